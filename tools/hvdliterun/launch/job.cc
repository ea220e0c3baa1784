#include "tools/hvdliterun/launch/job.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/config/config_loader.h"
#include "base/status_macros.h"
#include "collective/shm/allreduce_table.h"
#include "collective/topology.h"
#include "support/process.h"
#include "tools/hvdliterun/launch/launch_options.h"
#include "tools/hvdliterun/plan/launcher.h"
#include "tools/hvdliterun/plan/plan.h"
#include "tools/hvdliterun/plan/settings.h"

namespace hvdlite::launch {
namespace {

// OMP_NUM_THREADS of --set or of the environment. Of a list for nested regions
// it is the first number.
absl::StatusOr<std::optional<int>> OwnThreads(const Variables& variables) {
  const std::optional<std::string> text = variables.Get("OMP_NUM_THREADS");
  if (!text.has_value() || text->empty()) return std::nullopt;
  int threads = 0;
  if (!absl::SimpleAtoi(text->substr(0, text->find(',')), &threads) ||
      threads < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("OMP_NUM_THREADS=", *text,
                     " is not a number of threads: correct or unset it"));
  }
  return threads;
}

absl::StatusOr<PlanOptions> PlanOptionsOf(
    const Flags& flags, const Preset* preset, int ranks,
    const HostEnvironment& host_environment, Variables& variables) {
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
        " is kept; no core is reserved for the coordinator"));
  } else if (preset != nullptr && preset->comm_core.has_value()) {
    plan.comm_core = *preset->comm_core;
  }
  // A single rank has nothing to communicate. With one core less it would make
  // every speed-up look better than it is.
  if (ranks == 1 && plan.comm_core.kind == CommCore::Kind::kAuto) {
    plan.comm_core.kind = CommCore::Kind::kNone;
  }
  if (flags.memory.has_value()) {
    plan.memory = *flags.memory;
  } else if (!host_environment.memory_policy.empty()) {
    plan.memory.policy = MemoryPolicy::kInherit;
    variables.Note(absl::StrCat(
        "hvdliterun was started with the memory policy '",
        host_environment.memory_policy,
        "', which is kept on this host; use --mem to set one on all hosts"));
  } else if (preset != nullptr) {
    plan.memory = preset->memory;
  }
  return plan;
}

// Facts that hvdlite's own variables must match.
struct World {
  int ranks = 0;
  bool begins_here = false;  // rank 0 sees this host's files
};

absl::Status CheckFit(const Config& config,
                      const HostEnvironment& host_environment,
                      const World& world) {
  const absl::Status nodes = collective::CheckVirtualNodes(
      config.backend == "single" ? 1 : world.ranks, config.virtual_nodes);
  if (!nodes.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "HVDLITE_VIRTUAL_NODES=", config.virtual_nodes, ": ", nodes.message()));
  }
  const std::string& path = config.allreduce_table;
  if (path.empty() || !world.begins_here) return absl::OkStatus();
  const absl::StatusOr<std::string> text = host_environment.read_file(path);
  const absl::Status table =
      text.ok() ? collective::AllreduceTable::Parse(*text).status()
                : text.status();
  if (table.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("HVDLITE_ALLREDUCE_TABLE=", path, ": ", table.message()));
}

// Checks hvdlite's own variables before ranks read them.
absl::Status CheckKnobs(const HostEnvironment& host_environment,
                        const World& world, Variables& variables) {
  const absl::StatusOr<Config> config = LoadConfig(
      With(host_environment, PairsOf(variables.changes())).environment);
  const absl::Status status = config.ok()
                                  ? CheckFit(*config, host_environment, world)
                                  : config.status();
  if (!status.ok()) {
    std::string message(status.message());
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

// Checks the plans for hosts like this machine. If this machine is not one of
// them, a plan that does not fit here may fit there.
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
                     " (checked on this host, which is not part of the job; "
                     "each node makes its own plan)"));
  }
  return absl::OkStatus();
}

// Checks that each host gets the ranks of --map-by. Fewer ranks are allowed if
// -np is given and each domain of a host has at most one rank.
absl::Status CheckPlacement(const Flags& flags, const Machine& machine,
                            const std::vector<Host>& hosts,
                            bool machine_is_theirs) {
  if (!flags.placement.has_value() || !machine_is_theirs) {
    return absl::OkStatus();
  }
  const int ranks = RanksOf(*flags.placement, machine);
  const bool may_be_fewer =
      flags.ranks.has_value() && flags.placement->ranks_per_domain == 1;
  for (const Host& host : hosts) {
    if (host.slots == ranks || (may_be_fewer && host.slots < ranks)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--map-by means ", ranks, ranks == 1 ? " rank" : " ranks",
                     " on a host with ", machine.Describe(), ", but ",
                     host.name, " gets ", host.slots, "; use -H ", host.name,
                     ":", ranks, " and the matching -np"));
  }
  return absl::OkStatus();
}

// Finds the libraries of the program, and adds notes about what is not known.
// Error: the program does not exist although it `must_be_here`.
absl::StatusOr<Program> LookInto(const Flags& flags,
                                 const HostEnvironment& host_environment,
                                 bool must_be_here, Variables& variables) {
  const std::string& name = flags.program.front();
  const absl::StatusOr<std::string> path = support::PathOfProgram(
      name, host_environment.environment, host_environment.is_executable,
      host_environment.exists);
  if (!path.ok()) {
    if (must_be_here) return path.status();
    variables.Note(absl::StrCat("on this host, ", path.status().message()));
  }
  absl::StatusOr<std::vector<support::Library>> libraries =
      path.ok() ? host_environment.libraries(*path) : path.status();
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
        "the libraries of ", name,
        " are not known (is it a script?): settings are made for any OpenMP "
        "runtime; name the runtime with --openmp"));
  }
  return program;
}

struct OpenBlas {
  // The library that each node queries for its processor's kernels; empty if
  // the user has set them.
  std::string library;
  std::string core_here;  // what this host would set, in a dry run
};

OpenBlas OpenBlasToAsk(const Flags& flags,
                       const HostEnvironment& host_environment,
                       const Program& program, Variables& variables) {
  if (variables.Has("OPENBLAS_CORETYPE")) return {};
  OpenBlas openblas = {.library = support::OpenBlasCandidate(program.libraries),
                       .core_here = ""};
  if (!openblas.library.empty() && flags.dry_run.has_value()) {
    if (flags.topology.empty()) {
      openblas.core_here =
          host_environment.better_openblas_core(openblas.library);
    }
    variables.Note(absl::StrCat(
        "each node sets OPENBLAS_CORETYPE if OpenBLAS would choose the kernels "
        "of an old processor",
        openblas.core_here.empty()
            ? ""
            : absl::StrCat("; here: ", openblas.core_here)));
  }
  return openblas;
}

// The number of ranks of each host, if all have the same number.
std::optional<int> LocalSizeOf(const std::vector<Host>& hosts) {
  const bool even = std::all_of(
      hosts.begin(), hosts.end(),
      [&](const Host& host) { return host.slots == hosts.front().slots; });
  return even ? std::optional(hosts.front().slots) : std::nullopt;
}

// The hosts of a job's ranks, and the number of ranks on each.
struct JobHosts {
  Allocation allocation;
  std::vector<Host> hosts;  // slots: the ranks of each
  int ranks = 0;
  bool this_host = false;    // this host is one of them, judged by names
  bool begins_here = false;  // this host has rank 0, judged by names
};

absl::StatusOr<Allocation> NamedHosts(const Flags& flags,
                                      const HostEnvironment& host_environment) {
  if (!flags.host_list.empty()) return AllocationOfHostList(flags.host_list);
  const absl::StatusOr<std::string> text =
      host_environment.read_file(flags.hostfile);
  if (!text.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--hostfile: ", text.status().message(),
                     "; the file must have lines such as 'n01 slots=4'"));
  }
  return AllocationOfHostfile(*text, flags.hostfile);
}

}  // namespace

absl::StatusOr<Allocation> AllocationOf(
    const Flags& flags, const HostEnvironment& host_environment) {
  if (flags.host_list.empty() && flags.hostfile.empty()) {
    return DetectAllocation(host_environment.environment,
                            host_environment.read_file);
  }
  HVDLITE_ASSIGN_OR_RETURN(Allocation allocation,
                           NamedHosts(flags, host_environment));
  // The named hosts are usually a part of the batch job, so the batch system's
  // launcher must start the ranks.
  allocation.system = DetectBatchSystem(host_environment.environment);
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
        " has one line for each host: each host gets one rank; for more use "
        "-np N, or mpiprocs in the job's select"));
    return allocation.slots();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the number of ranks is missing: ", allocation.source,
                   " does not give it; use -np N"));
}

// Finds out whether ranks, and rank 0, run on this host, judged by names.
void FindThisHost(const HostEnvironment& host_environment, JobHosts& job) {
  const auto is_this = [&](const Host& host) {
    return IsThisHost(host.name, host_environment);
  };
  const std::vector<Host>& hosts = job.allocation.hosts;
  // Fujitsu's mpiexec uses no host names.
  const bool nameless =
      hosts.empty() || job.allocation.system == BatchSystem::kPjm;
  job.this_host = nameless || std::any_of(hosts.begin(), hosts.end(), is_this);
  job.begins_here = nameless || is_this(hosts.front());
}

// The hosts of -H or --hostfile, else of the batch system's job, else this one;
// with the ranks of -np, else of all slots. Adds a note if the number of ranks
// is only likely. Errors: the number of ranks is not given, or they do not fit.
absl::StatusOr<JobHosts> HostsOf(const Flags& flags,
                                 const HostEnvironment& host_environment,
                                 Variables& variables) {
  JobHosts job = {.allocation = {}, .hosts = {}};
  HVDLITE_ASSIGN_OR_RETURN(job.allocation,
                           AllocationOf(flags, host_environment));
  HVDLITE_ASSIGN_OR_RETURN(job.ranks,
                           RanksOf(flags, job.allocation, variables));
  HVDLITE_ASSIGN_OR_RETURN(
      job.hosts, DealRanks(job.allocation, job.ranks, flags.oversubscribe));
  FindThisHost(host_environment, job);
  return job;
}

}  // namespace

absl::StatusOr<Job> MakeJob(const Flags& flags,
                            const HostEnvironment& host_environment) {
  Variables variables(host_environment.environment);
  const bool elsewhere = !flags.topology.empty();  // dry run, another machine
  absl::StatusOr<Machine> machine =
      elsewhere ? MachineOf(flags.topology) : host_environment.machine();
  HVDLITE_RETURN_IF_ERROR(machine.status());
  HVDLITE_ASSIGN_OR_RETURN(const JobHosts where,
                           HostsOf(flags, host_environment, variables));
  HVDLITE_ASSIGN_OR_RETURN(
      const Program program,
      LookInto(flags, host_environment,
               /*must_be_here=*/where.this_host && !flags.dry_run.has_value(),
               variables));
  HVDLITE_RETURN_IF_ERROR(
      AddJobVariables(flags, program, host_environment, variables));
  HVDLITE_RETURN_IF_ERROR(CheckKnobs(
      host_environment,
      {.ranks = where.ranks, .begins_here = where.begins_here && !elsewhere},
      variables));
  HVDLITE_ASSIGN_OR_RETURN(
      const PlanOptions plan,
      PlanOptionsOf(flags, FindPreset(flags.preset), where.ranks,
                    host_environment, variables));
  HVDLITE_RETURN_IF_ERROR(CheckPlacement(flags, *machine, where.hosts,
                                         where.this_host || elsewhere));
  HVDLITE_RETURN_IF_ERROR(CheckPlans(*machine, where.hosts, plan,
                                     where.this_host || elsewhere, variables));
  const OpenBlas openblas =
      OpenBlasToAsk(flags, host_environment, program, variables);
  HVDLITE_ASSIGN_OR_RETURN(
      const LaunchOptions launch,
      LaunchOptionsOf(flags, host_environment, where.allocation, where.hosts,
                      where.this_host && !elsewhere, program.libraries,
                      variables));
  ExecRankOptions exec = {
      .plan = plan,
      .choices = {.openmp = RuntimeOf(program.openmp),
                  .threads_given = flags.threads.has_value(),
                  .comm_core_given = flags.comm_core.has_value()},
      .local_size = LocalSizeOf(where.hosts),
      .bound_by_launcher = KindOf(launch.launcher.launcher).binds_ranks,
      .openblas = openblas.library,
      .output_dir = flags.output_dir,
      .report = flags.report,
      .terminal = host_environment.terminal && flags.output_dir.empty() &&
                  launch.arguments.empty() &&
                  KindOf(launch.launcher.launcher).passes_bytes,
      .in_place = flags.in_place,
      .program = flags.program};
  for (const Variable& change : variables.changes()) {
    exec.settings.push_back(absl::StrCat(change.name, "=", change.value));
  }
  std::vector<std::string> command = LauncherCommand(launch);
  const std::vector<std::string> rank_command =
      ExecRankCommand(host_environment.self, exec);
  command.insert(command.end(), rank_command.begin(), rank_command.end());
  return Job{.ranks = where.ranks,
             .allocation = where.allocation.source,
             .hosts = where.hosts,
             .machine_from = elsewhere ? "--topology" : "this machine",
             .machine = *std::move(machine),
             .variables = variables,
             .exec = std::move(exec),
             .launcher = launch.launcher.launcher,
             .command = std::move(command),
             .launcher_environment = launch.environment,
             .openblas_core_here = openblas.core_here,
             .notes = variables.notes()};
}

}  // namespace hvdlite::launch
