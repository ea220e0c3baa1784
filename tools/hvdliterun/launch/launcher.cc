#include "tools/hvdliterun/launch/launcher.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace hvdlite::launch {
namespace {

using Words = std::vector<std::string>;

constexpr std::array kLaunchers = {std::pair(Launcher::kOpenMpi, "openmpi"),
                                   std::pair(Launcher::kMpich, "mpich"),
                                   std::pair(Launcher::kSrun, "srun"),
                                   std::pair(Launcher::kPjsub, "pjsub")};

constexpr std::array<absl::string_view, 20> kExportedPrefixes = {
    "HVDLITE_",  "OMP_",  "GOMP_",    "KMP_",    "OPENBLAS_",
    "MKL_",      "BLIS_", "DNNL_",    "ONEDNN_", "MALLOC_",
    "TCMALLOC_", "UCX_",  "XOS_MMM_", "FLIB_",   "NCCL_",
    "TORCH_",    "ATEN_", "FI_",      "PSM2_",   "PYTHON"};
constexpr std::array<absl::string_view, 4> kExportedNames = {
    "PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "GLIBC_TUNABLES"};

std::string HostSlots(const std::vector<Host>& hosts) {
  return absl::StrJoin(hosts, ",", [](std::string* out, const Host& host) {
    absl::StrAppend(out, host.name, ":", host.slots);
  });
}

Words OpenMpiCommand(const LaunchOptions& options, const std::string& ranks) {
  Words words = {options.launcher.program, "-np", ranks};
  if (!options.local) {
    words.insert(words.end(), {"--host", HostSlots(options.hosts)});
  }
  // In a batch system's job, mpirun takes slots from there whatever --host
  // says, and refuses more ranks (PBS without mpiprocs has one slot a node).
  // How many fit, hvdliterun has counted itself. Where slots are too few,
  // mpirun deals ranks evenly over the hosts, in order.
  const bool count_slots =
      !options.slots_of_batch_system || options.oversubscribe;
  words.insert(words.end(),
               {"--map-by", count_slots ? "slot" : "slot:OVERSUBSCRIBE",
                "--bind-to", "none"});
  if (options.oversubscribe) {
    words.insert(words.end(),
                 {"--oversubscribe", "--mca", "mpi_yield_when_idle", "1"});
  }
  if (options.allow_root) words.emplace_back("--allow-run-as-root");
  if (!options.local) {
    for (const std::string& name : options.exported) {
      words.insert(words.end(), {"-x", name});
    }
  }
  return words;
}

// The environment travels as it is (-genvall is the default).
Words MpichCommand(const LaunchOptions& options, const std::string& ranks) {
  Words words = {options.launcher.program, "-n", ranks};
  if (!options.local) {
    words.insert(words.end(), {"-hosts", HostSlots(options.hosts)});
  }
  words.insert(words.end(), {"-bind-to", "none"});
  // Intel's binds by itself, and knows this of its own command line only.
  if (!options.intel_pin.empty()) {
    words.insert(words.end(), {"-genv", "I_MPI_PIN", options.intel_pin});
  }
  return words;
}

Words SrunCommand(const LaunchOptions& options, const std::string& ranks) {
  const std::vector<Host>& hosts = options.hosts;
  Words words = {options.launcher.program, absl::StrCat("--ntasks=", ranks)};
  const bool even = std::all_of(hosts.begin(), hosts.end(), [&](const Host& h) {
    return h.slots == hosts.front().slots;
  });
  if (!options.local && even) {
    words.insert(
        words.end(),
        {absl::StrCat("--nodes=", hosts.size()),
         absl::StrCat("--ntasks-per-node=", hosts.front().slots),
         "--distribution=block",
         absl::StrCat(
             "--nodelist=",
             absl::StrJoin(hosts, ",", [](std::string* out, const Host& host) {
               absl::StrAppend(out, host.name);
             }))});
  } else if (!options.local) {
    // A host's name for each of its ranks.
    Words names;
    for (const Host& host : hosts) {
      names.insert(names.end(), static_cast<size_t>(host.slots), host.name);
    }
    words.insert(
        words.end(),
        {absl::StrCat("--nodes=", hosts.size()), "--distribution=arbitrary",
         absl::StrCat("--nodelist=", absl::StrJoin(names, ","))});
  }
  words.insert(words.end(), {"--cpu-bind=none", "--mem-bind=none",
                             "--export=ALL", "--kill-on-bad-exit=1"});
  if (options.oversubscribe) words.emplace_back("--overcommit");
  return words;
}

// Open MPI refuses to run as root unless told.
absl::Status CheckRoot(const Flags& flags, const Surroundings& surroundings,
                       LaunchOptions& launch, Variables& variables) {
  if (launch.launcher.launcher != Launcher::kOpenMpi || !surroundings.root) {
    return absl::OkStatus();
  }
  const auto is_on = [&](const char* name) {
    return surroundings.environment.get(name).value_or("") == "1";
  };
  if (is_on("OMPI_ALLOW_RUN_AS_ROOT") &&
      is_on("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")) {
    return absl::OkStatus();
  }
  launch.allow_root = true;
  if (flags.allow_root) return absl::OkStatus();
  if (!IsContainer(surroundings)) {
    return absl::InvalidArgumentError(
        "Open MPI refuses to run as root, and so does hvdliterun outside a "
        "container: a job that goes astray could harm the system. If you mean "
        "it, add --allow-run-as-root");
  }
  variables.Note(
      "root in a container: Open MPI gets --allow-run-as-root by itself");
  return absl::OkStatus();
}

}  // namespace

absl::string_view LauncherName(Launcher launcher) {
  for (const auto& [value, name] : kLaunchers) {
    if (value == launcher) return name;
  }
  return "?";
}

absl::StatusOr<Launcher> ParseLauncher(absl::string_view text) {
  for (const auto& [value, name] : kLaunchers) {
    if (text == name) return value;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--launcher ", text, ": none of auto, openmpi, mpich, srun, pjsub"));
}

absl::StatusOr<Launcher> LauncherOfVersion(absl::string_view version) {
  if (absl::StrContains(version, "Open MPI") ||
      absl::StrContains(version, "OpenRTE") ||
      absl::StrContains(version, "PRRTE")) {
    return Launcher::kOpenMpi;
  }
  if (absl::StrContains(version, "HYDRA") ||
      absl::StrContains(version, "Hydra") ||
      absl::StrContains(version, "MPICH") ||
      absl::StrContains(version, "Intel(R) MPI")) {
    return Launcher::kMpich;
  }
  return absl::NotFoundError(absl::StrCat(
      "it says '", version.substr(0, version.find('\n')),
      "', which is no launcher that is known; name its kind with --launcher"));
}

LauncherProgram ProgramOf(Launcher launcher) {
  const char* program = launcher == Launcher::kOpenMpi ? "mpirun"
                        : launcher == Launcher::kSrun  ? "srun"
                                                       : "mpiexec";
  return {.launcher = launcher, .program = program};
}

namespace {

using VersionOf =
    std::function<absl::StatusOr<std::string>(const std::string& program)>;

constexpr std::array kMpiPrograms = {"mpirun", "mpiexec", "mpiexec.hydra"};

// The first program of a known kind; NotFound says what there is instead.
absl::StatusOr<LauncherProgram> FindMpi(const VersionOf& version_of) {
  absl::Status reason = absl::NotFoundError(
      "there is no mpirun, mpiexec or srun in PATH: load your cluster's MPI "
      "module, or install one (Debian: openmpi-bin)");
  for (const char* program : kMpiPrograms) {
    const absl::StatusOr<std::string> version = version_of(program);
    if (!version.ok()) continue;
    const absl::StatusOr<Launcher> launcher = LauncherOfVersion(*version);
    if (launcher.ok()) {
      return LauncherProgram{.launcher = *launcher, .program = program};
    }
    reason = absl::NotFoundError(
        absl::StrCat(program, ": ", launcher.status().message()));
  }
  return reason;
}

// The first program of that kind, else the first of a kind that is not known.
absl::StatusOr<LauncherProgram> FindMpiOf(Launcher wanted,
                                          const VersionOf& version_of) {
  absl::StatusOr<LauncherProgram> fallback = ProgramOf(wanted);
  bool unknown = false;  // it is one of a kind that is not known
  for (const char* program : kMpiPrograms) {
    const absl::StatusOr<std::string> version = version_of(program);
    if (!version.ok()) continue;
    const LauncherProgram found = {.launcher = wanted, .program = program};
    const absl::StatusOr<Launcher> launcher = LauncherOfVersion(*version);
    if (launcher.ok() && *launcher == wanted) return found;
    if (unknown) continue;
    unknown = !launcher.ok();
    if (unknown) {
      fallback = found;
    } else {
      fallback = absl::NotFoundError(absl::StrCat(
          "--launcher ", LauncherName(wanted), ": ", program,
          " here is of the kind ", LauncherName(*launcher),
          ": load the other MPI's module, or leave --launcher out"));
    }
  }
  return fallback;
}

}  // namespace

absl::StatusOr<LauncherProgram> ChooseLauncher(const std::string& choice,
                                               BatchSystem system,
                                               const VersionOf& version_of) {
  if (choice != "auto") {
    HVDLITE_ASSIGN_OR_RETURN(const Launcher launcher, ParseLauncher(choice));
    const bool is_mpi =
        launcher == Launcher::kOpenMpi || launcher == Launcher::kMpich;
    return is_mpi ? FindMpiOf(launcher, version_of) : ProgramOf(launcher);
  }
  if (system == BatchSystem::kPjm) return ProgramOf(Launcher::kPjsub);
  absl::StatusOr<LauncherProgram> mpi = FindMpi(version_of);
  const bool prefers_srun = system == BatchSystem::kSlurm &&
                            (!mpi.ok() || mpi->launcher != Launcher::kOpenMpi);
  if (prefers_srun && version_of("srun").ok()) {
    return ProgramOf(Launcher::kSrun);
  }
  return mpi;
}

std::vector<std::string> LauncherCommand(const LaunchOptions& options) {
  const std::string ranks = absl::StrCat(std::accumulate(
      options.hosts.begin(), options.hosts.end(), 0,
      [](int sum, const Host& host) { return sum + host.slots; }));
  Words words;
  switch (options.launcher.launcher) {
    case Launcher::kOpenMpi:
      words = OpenMpiCommand(options, ranks);
      break;
    case Launcher::kMpich:
      words = MpichCommand(options, ranks);
      break;
    case Launcher::kSrun:
      words = SrunCommand(options, ranks);
      break;
    case Launcher::kPjsub:
      // The job's --mpi options place and bind the ranks.
      words = {options.launcher.program, "-n", ranks};
      break;
  }
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  return words;
}

std::vector<std::string> VariablesToExport(
    const base::Environment& environment) {
  std::vector<std::string> names;
  for (const std::string& name : environment.names()) {
    const bool named = std::find(kExportedNames.begin(), kExportedNames.end(),
                                 name) != kExportedNames.end();
    const bool prefixed =
        std::any_of(kExportedPrefixes.begin(), kExportedPrefixes.end(),
                    [&](absl::string_view prefix) {
                      return absl::StartsWith(name, prefix);
                    });
    if (named || prefixed) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<LaunchOptions> LaunchOptionsOf(const Flags& flags,
                                              const Surroundings& surroundings,
                                              const Allocation& allocation,
                                              const std::vector<Host>& hosts,
                                              Variables& variables) {
  LaunchOptions launch = {
      .launcher = {},
      .hosts = hosts,
      .local = allocation.hosts.empty(),
      .slots_of_batch_system = allocation.system != BatchSystem::kNone,
      .oversubscribe = flags.oversubscribe,
      .intel_pin = variables.Get("I_MPI_PIN").value_or(""),
      .exported = VariablesToExport(surroundings.environment),
      .arguments = flags.launcher_arguments};
  const absl::StatusOr<LauncherProgram> launcher = ChooseLauncher(
      flags.launcher, allocation.system, surroundings.version_of);
  if (launcher.ok()) {
    launch.launcher = *launcher;
  } else if (flags.dry_run.has_value() &&
             flags.launcher != "auto") {  // another machine's
    HVDLITE_ASSIGN_OR_RETURN(const Launcher named,
                             ParseLauncher(flags.launcher));
    launch.launcher = ProgramOf(named);
    variables.Note(std::string(launcher.status().message()));
  } else {
    return launcher.status();
  }
  HVDLITE_RETURN_IF_ERROR(CheckRoot(flags, surroundings, launch, variables));
  return launch;
}

}  // namespace hvdlite::launch
