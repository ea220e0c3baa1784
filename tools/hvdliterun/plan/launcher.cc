#include "tools/hvdliterun/plan/launcher.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace hvdlite::launch {
namespace {

using Arguments = std::vector<std::string>;

constexpr std::array<absl::string_view, 20> kExportedPrefixes = {
    "HVDLITE_",  "OMP_",  "GOMP_",    "KMP_",    "OPENBLAS_",
    "MKL_",      "BLIS_", "DNNL_",    "ONEDNN_", "MALLOC_",
    "TCMALLOC_", "UCX_",  "XOS_MMM_", "FLIB_",   "NCCL_",
    "TORCH_",    "ATEN_", "FI_",      "PSM2_",   "PYTHON"};
constexpr std::array<absl::string_view, 4> kExportedNames = {
    "PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "GLIBC_TUNABLES"};

Arguments OpenMpiCommand(const LaunchOptions& options,
                         const std::string& ranks) {
  Arguments command = {options.launcher.program, "-np", ranks};
  if (!options.local) {
    command.insert(command.end(), {"--host", HostList(options.hosts)});
  }
  // In a batch job, mpirun uses the slots of the job, not those of --host, and
  // refuses more ranks (PBS without mpiprocs has one slot per node).
  // hvdliterun has counted the ranks itself, so it allows more. If there are
  // too few slots, mpirun distributes ranks evenly over the hosts, in order.
  const bool count_slots =
      !options.slots_of_batch_system || options.oversubscribe;
  command.insert(command.end(),
                 {"--map-by", count_slots ? "slot" : "slot:OVERSUBSCRIBE",
                  "--bind-to", "none"});
  if (options.oversubscribe) {
    command.insert(command.end(),
                   {"--oversubscribe", "--mca", "mpi_yield_when_idle", "1"});
  }
  if (options.allow_root) command.emplace_back("--allow-run-as-root");
  if (options.in_place) command.insert(command.end(), {"--with-ft", "ulfm"});
  const bool prrte = MajorVersion(options.launcher).value_or(0) >= 5;
  if (prrte) {
    // The threads of mpirun that start ranks may miss the end of ranks that run
    // only milliseconds, and wait for them forever (PRRTE 3.0.8).
    command.insert(command.end(), {"--prtemca", "odls_base_max_threads", "0"});
  }
  if (prrte && options.slots_of_batch_system) {
    // Open MPI 5.0.7 crashes when it reads a Grid Engine job. It needs no
    // reading, because --host names the hosts.
    command.insert(command.end(), {"--prtemca", "ras", "^gridengine"});
  }
  if (!options.interfaces.empty()) {
    const std::string names = absl::StrJoin(options.interfaces, ",");
    command.insert(command.end(), {"--mca", "btl_tcp_if_include", names});
    // Starting ranks on this machine needs no network, and Open MPI 5 does not
    // accept lo here.
    if (!options.local) {
      command.insert(command.end(),
                     {prrte ? "--prtemca" : "--mca",
                      prrte ? "prte_if_include" : "oob_tcp_if_include", names});
    }
  }
  if (!options.ssh.empty()) {
    command.insert(command.end(), {prrte ? "--prtemca" : "--mca",
                                   prrte ? "plm_ssh_args" : "plm_rsh_args",
                                   absl::StrJoin(options.ssh, " ")});
  }
  if (!options.local) {
    for (const std::string& name : options.exported) {
      command.insert(command.end(), {"-x", name});
    }
  }
  return command;
}

// The whole environment is passed on (-genvall is the default).
Arguments MpichCommand(const LaunchOptions& options, const std::string& ranks) {
  Arguments command = {options.launcher.program, "-n", ranks};
  if (!options.local) {
    command.insert(command.end(), {"-hosts", HostList(options.hosts)});
  }
  command.insert(command.end(), {"-bind-to", "none"});
  for (const std::string& name : options.interfaces) {
    command.insert(command.end(), {"-iface", name});
  }
  // Intel's mpiexec binds ranks itself, and reads this setting only from its
  // command line.
  if (!options.intel_pin.empty()) {
    command.insert(command.end(), {"-genv", "I_MPI_PIN", options.intel_pin});
  }
  return command;
}

Arguments SrunCommand(const LaunchOptions& options, const std::string& ranks) {
  const std::vector<Host>& hosts = options.hosts;
  Arguments command = {options.launcher.program,
                       absl::StrCat("--ntasks=", ranks)};
  if (!options.local) {
    const int each = hosts.front().slots;
    const bool even = absl::c_all_of(
        hosts, [&](const Host& host) { return host.slots == each; });
    Arguments names;  // uneven: the host's name once per rank
    for (const Host& host : hosts) {
      names.insert(names.end(), even ? 1 : static_cast<size_t>(host.slots),
                   host.name);
    }
    command.push_back(absl::StrCat("--nodes=", hosts.size()));
    if (even) command.push_back(absl::StrCat("--ntasks-per-node=", each));
    command.push_back(
        absl::StrCat("--distribution=", even ? "block" : "arbitrary"));
    command.push_back(absl::StrCat("--nodelist=", absl::StrJoin(names, ",")));
  }
  command.insert(command.end(), {"--cpu-bind=none", "--mem-bind=none",
                                 "--export=ALL", "--kill-on-bad-exit=1"});
  if (options.oversubscribe) command.emplace_back("--overcommit");
  return command;
}

// The --mpi options of the job place and bind the ranks.
Arguments PjsubCommand(const LaunchOptions& options, const std::string& ranks) {
  return {options.launcher.program, "-n", ranks};
}

constexpr size_t kAnyNumber = std::numeric_limits<size_t>::max();

const std::vector<LauncherKind>& Kinds() {
  static const auto* const kinds = new std::vector<LauncherKind>{
      {.launcher = Launcher::kOpenMpi,
       .name = "openmpi",
       .program = "mpirun",
       .version_words = {"Open MPI", "OpenRTE", "PRRTE"},
       .libraries = {"libmpi.so.40"},
       .command = OpenMpiCommand,
       .passes_bytes = true,
       .refuses_root = true,
       .starts_by_ssh = true,
       .max_interfaces = kAnyNumber},
      {.launcher = Launcher::kMpich,
       .name = "mpich",
       .program = "mpiexec",
       .version_words = {"HYDRA", "Hydra", "MPICH", "Intel(R) MPI"},
       .libraries = {"libmpich.so", "libmpi.so.12"},
       .command = MpichCommand,
       .passes_bytes = true,
       .starts_by_ssh = true,
       .goes_on_after_failures = true,
       .ends_of_sigusr2 = true,
       .tells_on_output = true,
       .max_interfaces = 1},
      {.launcher = Launcher::kSrun,
       .name = "srun",
       .program = "srun",
       .version_words = {},
       .command = SrunCommand,
       .max_interfaces = kAnyNumber},
      {.launcher = Launcher::kPjsub,
       .name = "pjsub",
       .program = "mpiexec",
       .version_words = {},
       .command = PjsubCommand,
       .only_one_of = BatchSystem::kPjm,
       .binds_ranks = true}};
  return *kinds;
}

}  // namespace

const LauncherKind& KindOf(Launcher launcher) {
  return *absl::c_find_if(Kinds(), [&](const LauncherKind& kind) {
    return kind.launcher == launcher;
  });
}

std::vector<std::string> LauncherChoices() {
  std::vector<std::string> names = {"auto"};
  for (const LauncherKind& kind : Kinds()) names.push_back(kind.name);
  return names;
}

absl::StatusOr<Launcher> ParseLauncher(absl::string_view text) {
  for (const LauncherKind& kind : Kinds()) {
    if (text == kind.name) return kind.launcher;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--launcher ", text, ": it is not one of ",
                   absl::StrJoin(LauncherChoices(), ", ")));
}

std::optional<Launcher> LauncherOfLibraries(
    const std::vector<support::Library>& libraries) {
  for (const LauncherKind& kind : Kinds()) {
    for (const std::string& name : kind.libraries) {
      if (absl::c_any_of(libraries, [&](const support::Library& library) {
            return absl::StartsWith(library.name, name);
          })) {
        return kind.launcher;
      }
    }
  }
  return std::nullopt;
}

std::optional<int> MajorVersion(const LauncherProgram& launcher) {
  if (launcher.version.empty()) return std::nullopt;
  int major = 0;
  const std::vector<absl::string_view> parts =
      absl::StrSplit(launcher.version, absl::ByAnyChar(" \n"));
  for (const absl::string_view part : parts) {
    if (absl::SimpleAtoi(part.substr(0, part.find('.')), &major)) break;
  }
  return major;
}

std::string VersionLine(const LauncherProgram& launcher) {
  // "HYDRA build details:\n    Version:      4.0.2\n..."
  std::string text =
      absl::StrReplaceAll(launcher.version, {{" build details:\n", " "}});
  text.resize(std::min(text.size(), text.find('\n')));
  absl::RemoveExtraAsciiWhitespace(&text);
  return text;
}

LauncherProgram ProgramOf(Launcher launcher) {
  return {.launcher = launcher, .program = KindOf(launcher).program};
}

namespace {

using VersionOf =
    std::function<absl::StatusOr<std::string>(const std::string& program)>;

constexpr std::array kMpiPrograms = {"mpirun", "mpiexec", "mpiexec.hydra",
                                     "orterun"};

// Detects the launcher by the output of `mpirun --version`. An error quotes it.
absl::StatusOr<Launcher> LauncherOfVersion(absl::string_view version) {
  for (const LauncherKind& kind : Kinds()) {
    for (const std::string& word : kind.version_words) {
      if (absl::StrContains(version, word)) return kind.launcher;
    }
  }
  return absl::NotFoundError(absl::StrCat("unknown launcher with the version '",
                                          version.substr(0, version.find('\n')),
                                          "'; name its kind with --launcher"));
}

// Finds the first program of the kind `wanted` on this machine. If there is
// none and the kind is only preferred: the first program of a known kind. If
// the user `named` the kind: the first program of an unknown kind, or the usual
// name if there is no program. NotFound names a program of another kind, the
// last if there are several.
absl::StatusOr<LauncherProgram> FindMpi(std::optional<Launcher> wanted,
                                        bool named,
                                        const VersionOf& version_of) {
  std::optional<LauncherProgram> known;
  std::optional<LauncherProgram> unknown;
  absl::Status reason = absl::NotFoundError(
      "there is no mpirun, mpiexec or srun in PATH: load your cluster's MPI "
      "module, or install one (Debian: openmpi-bin)");
  for (const char* program : kMpiPrograms) {
    const absl::StatusOr<std::string> version = version_of(program);
    if (!version.ok()) continue;
    const absl::StatusOr<Launcher> launcher = LauncherOfVersion(*version);
    const LauncherProgram found = {
        .launcher = launcher.value_or(wanted.value_or(Launcher::kOpenMpi)),
        .program = program,
        .version = *version};
    if (launcher.ok() && *launcher == wanted.value_or(*launcher)) return found;
    std::optional<LauncherProgram>& other = launcher.ok() ? known : unknown;
    const bool is_wrong = named && launcher.ok();
    if (is_wrong || !other.has_value()) other = found;
    if (!launcher.ok()) {
      reason = absl::NotFoundError(
          absl::StrCat(program, ": ", launcher.status().message()));
    }
  }
  if (!named && known.has_value()) return *known;
  if (!named) return reason;
  if (unknown.has_value()) return *unknown;
  if (!known.has_value()) return ProgramOf(*wanted);
  return absl::NotFoundError(absl::StrCat(
      "--launcher ", KindOf(*wanted).name, ": ", known->program,
      " on this host is of the kind ", KindOf(known->launcher).name,
      ": load the module of the other MPI, or remove --launcher"));
}

}  // namespace

absl::StatusOr<LauncherProgram> ChooseLauncher(
    const std::string& choice, BatchSystem system, const VersionOf& version_of,
    std::optional<Launcher> of_program) {
  if (choice != "auto") {
    HVDLITE_ASSIGN_OR_RETURN(const Launcher launcher, ParseLauncher(choice));
    return KindOf(launcher).version_words.empty()
               ? ProgramOf(launcher)
               : FindMpi(launcher, /*named=*/true, version_of);
  }
  for (const LauncherKind& kind : Kinds()) {
    if (kind.only_one_of != BatchSystem::kNone && kind.only_one_of == system) {
      return ProgramOf(kind.launcher);
    }
  }
  absl::StatusOr<LauncherProgram> mpi =
      FindMpi(of_program, /*named=*/false, version_of);
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
  Arguments command = KindOf(options.launcher.launcher).command(options, ranks);
  command.insert(command.end(), options.arguments.begin(),
                 options.arguments.end());
  return command;
}

std::vector<std::string> VariablesToExport(
    const base::Environment& environment) {
  std::vector<std::string> names;
  for (const std::string& name : environment.names()) {
    if (absl::c_linear_search(kExportedNames, name) ||
        absl::c_any_of(kExportedPrefixes, [&](absl::string_view prefix) {
          return absl::StartsWith(name, prefix);
        })) {
      names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace hvdlite::launch
