#include "tools/hvdliterun/launch/job.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "negotiation/world/config_loader.h"
#include "tools/hvdliterun/plan/launcher.h"
#include "tools/hvdliterun/plan/plan.h"
#include "tools/hvdliterun/plan/settings.h"

namespace hvdlite::launch {
namespace {

// OMP_NUM_THREADS of --set or of the environment; of a list for nested regions,
// the first.
absl::StatusOr<std::optional<int>> OwnThreads(const Variables& variables) {
  const std::optional<std::string> text = variables.Get("OMP_NUM_THREADS");
  if (!text.has_value() || text->empty()) return std::nullopt;
  int threads = 0;
  if (!absl::SimpleAtoi(text->substr(0, text->find(',')), &threads) ||
      threads < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "OMP_NUM_THREADS=", *text, " is no number of threads: unset it"));
  }
  return threads;
}

absl::StatusOr<PlanOptions> PlanOptionsOf(const Flags& flags,
                                          const Preset* preset, int ranks,
                                          const Surroundings& surroundings,
                                          Variables& variables) {
  PlanOptions plan = {.threads = flags.threads,
                      .oversubscribe = flags.oversubscribe};
  plan.domain =
      flags.map.value_or(preset != nullptr ? preset->domain : Domain::kNode);
  if (!plan.threads.has_value()) {
    HVDLITE_ASSIGN_OR_RETURN(plan.threads, OwnThreads(variables));
  }
  if (flags.comm_core.has_value()) {
    plan.comm_core = *flags.comm_core;
  } else if (variables.Has("HVDLITE_COORDINATOR_CORE")) {
    plan.comm_core.kind = CommCore::Kind::kNone;
    variables.Note(absl::StrCat(
        "HVDLITE_COORDINATOR_CORE=", *variables.Get("HVDLITE_COORDINATOR_CORE"),
        " is kept; no core is set aside for the coordinator"));
  } else if (preset != nullptr && preset->comm_core.has_value()) {
    plan.comm_core = *preset->comm_core;
  }
  // Alone in its world, a rank has nothing to communicate; with a core less it
  // would flatter every speed-up.
  if (ranks == 1 && plan.comm_core.kind == CommCore::Kind::kAuto) {
    plan.comm_core.kind = CommCore::Kind::kNone;
  }
  if (flags.memory.has_value()) {
    plan.memory = *flags.memory;
  } else if (!surroundings.memory_policy.empty()) {
    plan.memory = MemoryPolicy::kInherit;
    variables.Note(absl::StrCat(
        "the memory policy '", surroundings.memory_policy,
        "', with which hvdliterun was started, is kept on this host; use --mem "
        "to have one on all hosts"));
  } else if (preset != nullptr) {
    plan.memory = preset->memory;
  }
  return plan;
}

// hvdlite's own variables, before a rank stumbles over them.
absl::Status CheckKnobs(const Surroundings& surroundings,
                        Variables& variables) {
  std::vector<std::pair<std::string, std::string>> merged;
  for (const std::string& name : surroundings.environment.names()) {
    merged.emplace_back(name, *variables.Get(name));
  }
  for (const Variable& change : variables.changes()) {
    merged.emplace_back(change.name, change.value);
  }
  const absl::StatusOr<Config> config =
      LoadConfig(base::FakeEnvironment(std::move(merged)));
  if (!config.ok()) {
    std::string message(config.status().message());
    for (const Variable& change : variables.changes()) {
      if (absl::StrContains(message, absl::StrCat(change.name, "="))) {
        absl::StrAppend(&message, "; it is set by ", change.source);
      }
    }
    return absl::InvalidArgumentError(message);
  }
  for (const std::string& warning : config->warnings) variables.Note(warning);
  return absl::OkStatus();
}

// Plans for hosts like the machine. Where that is none of them, what does not
// fit here may fit there.
absl::Status CheckPlans(const Machine& machine, const std::vector<Host>& hosts,
                        const PlanOptions& options, bool machine_is_theirs,
                        Variables& variables) {
  std::set<int> sizes;
  for (const Host& host : hosts) sizes.insert(host.slots);
  for (const int size : sizes) {
    const absl::Status status = PlanHost(machine, size, options).status();
    if (status.ok()) continue;
    if (machine_is_theirs) return status;
    variables.Note(
        absl::StrCat(status.message(),
                     ": so it is on this host, which is none of the job's; "
                     "the nodes plan for themselves"));
  }
  return absl::OkStatus();
}

// What the program links.
struct Program {
  std::vector<support::Library> libraries =
      {};  // empty where it cannot be told
  std::vector<support::OpenMpRuntime> openmp = {};  // kUnknown, likewise
  bool can_be_looked_into = false;
};

// Notes what cannot be told. An error if the program `must_be_here`, and is
// not.
absl::StatusOr<Program> LookInto(const Flags& flags,
                                 const Surroundings& surroundings,
                                 bool must_be_here, Variables& variables) {
  const std::string& name = flags.program.front();
  const absl::StatusOr<std::string> path = PathOfProgram(name, surroundings);
  if (!path.ok()) {
    if (must_be_here) return path.status();
    variables.Note(absl::StrCat("on this host, ", path.status().message()));
  }
  absl::StatusOr<std::vector<support::Library>> libraries =
      path.ok() ? surroundings.libraries(*path) : path.status();
  Program program;
  program.can_be_looked_into = libraries.ok();
  if (libraries.ok()) program.libraries = *std::move(libraries);
  if (flags.openmp != "auto") {
    HVDLITE_ASSIGN_OR_RETURN(const support::OpenMpRuntime named,
                             support::ParseOpenMpRuntime(flags.openmp));
    program.openmp = {named};
  } else if (program.can_be_looked_into) {
    program.openmp = support::OpenMpRuntimesOf(program.libraries);
  } else {
    program.openmp = {support::OpenMpRuntime::kUnknown};
    variables.Note(absl::StrCat(
        name,
        " cannot be looked into (a script?): settings are made for any OpenMP "
        "runtime; --openmp names one"));
  }
  return program;
}

// Variables of all ranks: those of flags, presets, allocators, checked.
absl::Status AddVariables(const Flags& flags, const Surroundings& surroundings,
                          const Program& program, Variables& variables) {
  JobChoices choices = {.preset = FindPreset(flags.preset),
                        .flags = flags.settings,
                        .openmp = program.openmp,
                        .lacks_large_page_library =
                            program.can_be_looked_into &&
                            !support::HasLargePageLibrary(program.libraries),
                        .allocator = flags.allocator,
                        .huge_pages = flags.huge_pages};
  if (flags.allocator != Allocator::kDefault) {
    HVDLITE_ASSIGN_OR_RETURN(
        choices.allocator_library,
        FindAllocator(flags.allocator, surroundings.environment,
                      surroundings.exists));
  }
  AddJobVariables(choices, variables);
  return CheckKnobs(surroundings, variables);
}

struct OpenBlas {
  // That each node asks for its processor's kernels; empty if the user has
  // chosen them.
  std::string library;
  std::string core_here;  // what this one would set, in a dry run
};

OpenBlas OpenBlasToAsk(const Flags& flags, const Surroundings& surroundings,
                       const Program& program, Variables& variables) {
  if (variables.Has("OPENBLAS_CORETYPE")) return {};
  OpenBlas openblas = {.library = support::OpenBlasCandidate(program.libraries),
                       .core_here = ""};
  if (!openblas.library.empty() && flags.dry_run.has_value()) {
    if (flags.topology.empty()) {
      openblas.core_here = surroundings.better_openblas_core(openblas.library);
    }
    variables.Note(absl::StrCat(
        "each node sets OPENBLAS_CORETYPE if OpenBLAS would take the kernels "
        "of an old processor",
        openblas.core_here.empty()
            ? ""
            : absl::StrCat("; here: ", openblas.core_here)));
  }
  return openblas;
}

// Ranks of each host, if equally many.
std::optional<int> LocalSizeOf(const std::vector<Host>& hosts) {
  const bool even = std::all_of(
      hosts.begin(), hosts.end(),
      [&](const Host& host) { return host.slots == hosts.front().slots; });
  return even ? std::optional(hosts.front().slots) : std::nullopt;
}

// Open MPI refuses to run as root unless it is told.
absl::Status CheckRoot(const Flags& flags, const Surroundings& surroundings,
                       LaunchOptions& launch, Variables& variables) {
  if (!KindOf(launch.launcher.launcher).refuses_root || !surroundings.root) {
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

// Open MPI has it as of version 5; what an older mpirun would say of its flag
// helps nobody.
absl::Status CheckInPlace(const Flags& flags, LaunchOptions& launch) {
  if (!flags.in_place) return absl::OkStatus();
  const LauncherProgram& program = launch.launcher;
  if (program.launcher != Launcher::kOpenMpi ||
      MajorVersion(program).value_or(5) < 5) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--in-place needs Open MPI 5 or later, and the launcher is ",
        program.version.empty()
            ? program.program
            : absl::StrCat(
                  "'", program.version.substr(0, program.version.find('\n')),
                  "'"),
        ": leave it out, and use --max-restarts, which starts the job again"));
  }
  launch.in_place = true;
  return absl::OkStatus();
}

// Names that this host does not have are an error where it is one of the job's.
absl::Status AddInterfaces(const Flags& flags, const Surroundings& surroundings,
                           bool this_host, LaunchOptions& launch,
                           Variables& variables) {
  if (flags.interfaces.empty()) return absl::OkStatus();
  const LauncherKind& kind = KindOf(launch.launcher.launcher);
  const std::string names = absl::StrJoin(flags.interfaces, ",");
  if (flags.interfaces.size() > kind.max_interfaces) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--network-interface ", names, ": the launcher, ",
        launch.launcher.program, " (", kind.name, "), can be told ",
        kind.max_interfaces == 0 ? "none: leave it out" : "one: name one"));
  }
  const std::vector<NetworkInterface> known = surroundings.interfaces();
  std::vector<std::string> devices;  // as UCX names them
  for (const std::string& name : flags.interfaces) {
    devices.push_back(name);
    const auto found =
        std::find_if(known.begin(), known.end(),
                     [&](const auto& one) { return one.name == name; });
    if (found != known.end()) {
      if (!found->rdma_device.empty()) devices.push_back(found->rdma_device);
      continue;
    }
    const std::string message = absl::StrCat(
        "--network-interface ", names, ": this host has no ", name, "; it has ",
        absl::StrJoin(known, ", ", [](std::string* out, const auto& one) {
          absl::StrAppend(out, one.name);
        }));
    if (this_host) return absl::InvalidArgumentError(message);
    variables.Note(message + ", and is none of the job's");
  }
  launch.interfaces = flags.interfaces;
  variables.Set("UCX_NET_DEVICES", absl::StrJoin(devices, ","),
                "--network-interface");
  // It places no networks itself; ranks of Open MPI read this, others do not.
  if (launch.launcher.launcher == Launcher::kSrun) {
    variables.Set("OMPI_MCA_btl_tcp_if_include", names, "--network-interface");
  }
  return absl::OkStatus();
}

absl::Status AddSsh(const Flags& flags, const Surroundings& surroundings,
                    const Allocation& allocation, LaunchOptions& launch,
                    Variables& variables) {
  const std::string& key = flags.ssh_identity_file;
  if (!flags.ssh_port.has_value() && key.empty()) return absl::OkStatus();
  const std::string flag =
      flags.ssh_port.has_value() ? "--ssh-port" : "--ssh-identity-file";
  const LauncherKind& kind = KindOf(launch.launcher.launcher);
  if (!kind.starts_by_ssh) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": the launcher, ", launch.launcher.program, " (",
                     kind.name, "), does not use ssh: leave it out"));
  }
  // The launchers split their words for ssh at spaces.
  if (!key.empty() &&
      (!surroundings.exists(key) || absl::StrContains(key, " "))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--ssh-identity-file: ",
        surroundings.exists(key)
            ? absl::StrCat("'", key,
                           "' has a space, which launchers cannot "
                           "pass on: copy or link it")
            : absl::StrCat("there is no ", key, ": correct the path")));
  }
  if (flags.ssh_port.has_value()) {
    launch.ssh = {"-p", absl::StrCat(*flags.ssh_port)};
  }
  if (!key.empty()) launch.ssh.insert(launch.ssh.end(), {"-i", key});
  if (allocation.system != BatchSystem::kNone) {
    variables.Note(absl::StrCat(
        flag, " matters only if ", launch.launcher.program,
        " uses ssh in this job: where it can, it starts ranks by the batch "
        "system"));
  }
  return absl::OkStatus();
}

// For ranks on `hosts`, which are some of the allocation's. Notes what is added
// without being asked for. InvalidArgument: root outside a container, without
// the flag; NotFound: no launcher.
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
  HVDLITE_RETURN_IF_ERROR(CheckInPlace(flags, launch));
  return launch;
}

// A job step holds its CPUs, and steps within it, by which the launcher starts
// its daemons or ranks, would wait for its end. SLURM_OVERLAP is srun's
// --overlap (SLURM 20.11 and later).
std::vector<std::pair<std::string, std::string>> LauncherEnvironment(
    BatchSystem system, const base::Environment& environment,
    Variables& variables) {
  if (system != BatchSystem::kSlurm ||
      !environment.get("SLURM_STEP_ID").has_value() ||
      environment.get("SLURM_OVERLAP").has_value()) {
    return {};
  }
  variables.Note(
      "hvdliterun runs in a job step of SLURM (SLURM_STEP_ID is set), whose "
      "CPUs the ranks share: the launcher gets SLURM_OVERLAP=1, without which "
      "it would wait for the step to end");
  return {{"SLURM_OVERLAP", "1"}};
}

// Which hosts a job's ranks run on, and how many on each.
struct JobHosts {
  Allocation allocation;
  std::vector<Host> hosts;  // slots: the ranks of each
  int ranks = 0;
  bool this_host = false;  // is one of them, as far as names tell
};

absl::StatusOr<Allocation> NamedHosts(const Flags& flags,
                                      const Surroundings& surroundings) {
  if (!flags.host_list.empty()) return AllocationOfHostList(flags.host_list);
  const absl::StatusOr<std::string> text =
      surroundings.read_file(flags.hostfile);
  if (!text.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--hostfile: ", text.status().message(),
                     "; it is a file with lines such as 'n01 slots=4'"));
  }
  return AllocationOfHostfile(*text, flags.hostfile);
}

}  // namespace

absl::StatusOr<Allocation> AllocationOf(const Flags& flags,
                                        const Surroundings& surroundings) {
  if (flags.host_list.empty() && flags.hostfile.empty()) {
    return DetectAllocation(surroundings.environment, surroundings.read_file);
  }
  HVDLITE_ASSIGN_OR_RETURN(Allocation allocation,
                           NamedHosts(flags, surroundings));
  // Some of the job's hosts, as a rule: its launcher has to start there.
  allocation.system = DetectBatchSystem(surroundings.environment);
  return allocation;
}

namespace {

absl::StatusOr<int> RanksOf(const Flags& flags, const Allocation& allocation,
                            Variables& variables) {
  if (flags.ranks.has_value()) return *flags.ranks;
  if (allocation.slots_are_known) return allocation.slots();
  if (allocation.slots_are_likely && !allocation.hosts.empty()) {
    variables.Note(absl::StrCat(
        allocation.source,
        " has one line for each host: one rank each; for more use -np N, or "
        "mpiprocs in the job's select"));
    return allocation.slots();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "how many ranks? ", allocation.source, " does not say: use -np N"));
}

std::string ShortName(const std::string& host) {
  return host.substr(0, host.find('.'));
}

// Whether ranks run on this host, as far as names tell.
bool UsesThisHost(const Allocation& allocation,
                  const Surroundings& surroundings) {
  // Fujitsu's mpiexec has no names of hosts.
  if (allocation.hosts.empty() || allocation.system == BatchSystem::kPjm) {
    return true;
  }
  return std::any_of(
      allocation.hosts.begin(), allocation.hosts.end(), [&](const Host& host) {
        return host.name == "localhost" || host.name == "127.0.0.1" ||
               ShortName(host.name) == ShortName(surroundings.host_name);
      });
}

// Those of -H or --hostfile, else of the batch system's job, else this one; the
// ranks of -np, else all slots. Notes a number of ranks that is only likely.
// Errors: nobody says how many ranks, or they do not fit.
absl::StatusOr<JobHosts> HostsOf(const Flags& flags,
                                 const Surroundings& surroundings,
                                 Variables& variables) {
  JobHosts job = {.allocation = {}, .hosts = {}};
  HVDLITE_ASSIGN_OR_RETURN(job.allocation, AllocationOf(flags, surroundings));
  HVDLITE_ASSIGN_OR_RETURN(job.ranks,
                           RanksOf(flags, job.allocation, variables));
  HVDLITE_ASSIGN_OR_RETURN(
      job.hosts, DealRanks(job.allocation, job.ranks, flags.oversubscribe));
  job.this_host = UsesThisHost(job.allocation, surroundings);
  return job;
}

}  // namespace

absl::StatusOr<Job> MakeJob(const Flags& flags,
                            const Surroundings& surroundings) {
  Variables variables(surroundings.environment);
  const bool elsewhere = !flags.topology.empty();  // a dry run's other machine
  absl::StatusOr<Machine> machine =
      elsewhere ? MachineOf(flags.topology) : surroundings.machine();
  HVDLITE_RETURN_IF_ERROR(machine.status());
  HVDLITE_ASSIGN_OR_RETURN(const JobHosts where,
                           HostsOf(flags, surroundings, variables));
  HVDLITE_ASSIGN_OR_RETURN(
      const Program program,
      LookInto(flags, surroundings,
               /*must_be_here=*/where.this_host && !flags.dry_run.has_value(),
               variables));
  HVDLITE_RETURN_IF_ERROR(
      AddVariables(flags, surroundings, program, variables));
  HVDLITE_ASSIGN_OR_RETURN(const PlanOptions plan,
                           PlanOptionsOf(flags, FindPreset(flags.preset),
                                         where.ranks, surroundings, variables));
  HVDLITE_RETURN_IF_ERROR(CheckPlans(*machine, where.hosts, plan,
                                     where.this_host || elsewhere, variables));
  const OpenBlas openblas =
      OpenBlasToAsk(flags, surroundings, program, variables);
  HVDLITE_ASSIGN_OR_RETURN(
      LaunchOptions launch,
      LaunchOptionsOf(flags, surroundings, where.allocation, where.hosts,
                      variables));
  HVDLITE_RETURN_IF_ERROR(AddInterfaces(
      flags, surroundings, where.this_host && !elsewhere, launch, variables));
  HVDLITE_RETURN_IF_ERROR(
      AddSsh(flags, surroundings, where.allocation, launch, variables));
  ExecRankOptions exec = {
      .plan = plan,
      .threads_given = flags.threads.has_value(),
      .comm_core_given = flags.comm_core.has_value(),
      .openmp = RuntimeOf(program.openmp),
      .local_size = LocalSizeOf(where.hosts),
      .bound_by_launcher = KindOf(launch.launcher.launcher).binds_ranks,
      .openblas = openblas.library,
      .output_dir = flags.output_dir,
      .report = flags.report,
      .in_place = flags.in_place,
      .program = flags.program};
  for (const Variable& change : variables.changes()) {
    exec.settings.push_back(absl::StrCat(change.name, "=", change.value));
  }
  auto launcher_environment = LauncherEnvironment(
      where.allocation.system, surroundings.environment, variables);
  for (auto& variable : LauncherVariables(launch)) {
    launcher_environment.push_back(std::move(variable));
  }
  std::vector<std::string> command = LauncherCommand(launch);
  const std::vector<std::string> rank_command =
      ExecRankCommand(surroundings.self, exec);
  command.insert(command.end(), rank_command.begin(), rank_command.end());
  return Job{.ranks = where.ranks,
             .allocation = where.allocation.source,
             .hosts = where.hosts,
             .machine_from = elsewhere ? "--topology" : "this machine",
             .machine = *std::move(machine),
             .variables = variables,
             .exec = std::move(exec),
             .command = std::move(command),
             .launcher_environment = std::move(launcher_environment),
             .output_dir = flags.output_dir,
             .in_place = flags.in_place,
             .openblas_core_here = openblas.core_here,
             .notes = variables.notes()};
}

}  // namespace hvdlite::launch
