#include "tools/hvdliterun/job.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/hvdliterun/job_variables.h"
#include "tools/hvdliterun/launch_options.h"
#include "tools/hvdliterun/presets.h"
#include "torch_plugin/config_loader.h"

namespace hvdlite::launch {
namespace {

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
                                          const Preset* preset,
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

// Plans for hosts like the machine. Where that is none of them, what does not
// fit here may fit there.
absl::Status CheckPlans(const Job& job, bool machine_is_theirs,
                        Variables& variables) {
  std::set<int> sizes;
  for (const Host& host : job.hosts) sizes.insert(host.slots);
  for (const int size : sizes) {
    const absl::Status status =
        PlanHost(job.machine, size, job.exec.plan).status();
    if (status.ok()) continue;
    if (machine_is_theirs) return status;
    variables.Note(
        absl::StrCat(status.message(),
                     ": so it is on this host, which is none of the job's; "
                     "the nodes plan for themselves"));
  }
  return absl::OkStatus();
}

// What the program links, as far as settings depend on it; notes where that is
// unknown. An error if it `must_be_here`, and is not.
absl::Status LookInto(const Flags& flags, const Surroundings& surroundings,
                      bool must_be_here, std::vector<LinkedLibrary>& libraries,
                      JobChoices& choices, Variables& variables) {
  const std::string& program = flags.program.front();
  std::vector<OpenMpRuntime>& openmp = choices.openmp;
  const absl::StatusOr<std::string> path = PathOfProgram(program, surroundings);
  if (!path.ok()) {
    if (must_be_here) return path.status();
    variables.Note(absl::StrCat("on this host, ", path.status().message()));
  }
  absl::StatusOr<std::vector<LinkedLibrary>> linked =
      path.ok() ? surroundings.libraries(*path) : path.status();
  if (linked.ok()) {
    libraries = *std::move(linked);
    openmp = OpenMpRuntimesOf(libraries);
    choices.lacks_large_page_library = !HasLargePageLibrary(libraries);
  }
  const absl::StatusOr<OpenMpRuntime> named = ParseOpenMpRuntime(flags.openmp);
  if (named.ok()) {
    openmp = {*named};
  } else if (!linked.ok()) {
    openmp = {OpenMpRuntime::kUnknown};
    variables.Note(absl::StrCat(
        program,
        " cannot be looked into (a script?): settings are made for "
        "any OpenMP runtime; --openmp names one"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Job> MakeJob(const Flags& flags,
                            const Surroundings& surroundings) {
  Job job = {
      .allocation = {},
      .hosts = {},
      .machine_from = flags.topology.empty() ? "this machine" : "--topology",
      .machine = {},
      .variables = Variables(surroundings.environment),
      .exec = {},
      .launch = {},
      .command = {},
      .output_dir = flags.output_dir,
      .notes = {}};
  if (flags.topology.empty()) {
    HVDLITE_ASSIGN_OR_RETURN(job.machine, surroundings.machine());
  } else {
    HVDLITE_ASSIGN_OR_RETURN(job.machine, MachineOf(flags.topology));
  }
  HVDLITE_ASSIGN_OR_RETURN(const Allocation allocation,
                           AllocationOf(flags, surroundings));
  HVDLITE_ASSIGN_OR_RETURN(job.ranks,
                           RanksOf(flags, allocation, job.variables));
  HVDLITE_ASSIGN_OR_RETURN(
      job.hosts, DealRanks(allocation, job.ranks, flags.oversubscribe));
  job.allocation = allocation.source;

  const Preset* preset = FindPreset(flags.preset);
  JobChoices choices = {.preset = preset,
                        .flags = flags.settings,
                        .openmp = {},
                        .allocator = flags.allocator,
                        .huge_pages = flags.huge_pages};
  std::vector<LinkedLibrary> libraries;
  const bool here = UsesThisHost(allocation, surroundings);
  HVDLITE_RETURN_IF_ERROR(LookInto(flags, surroundings, here && !flags.dry_run,
                                   libraries, choices, job.variables));
  if (flags.allocator != Allocator::kDefault) {
    HVDLITE_ASSIGN_OR_RETURN(
        choices.allocator_library,
        FindAllocator(flags.allocator, surroundings.environment,
                      surroundings.exists));
  }
  AddJobVariables(choices, job.variables);
  HVDLITE_RETURN_IF_ERROR(CheckKnobs(surroundings, job.variables));

  HVDLITE_ASSIGN_OR_RETURN(
      job.exec.plan, PlanOptionsOf(flags, preset, surroundings, job.variables));
  std::set<int> sizes;
  for (const Host& host : job.hosts) sizes.insert(host.slots);
  HVDLITE_RETURN_IF_ERROR(
      CheckPlans(job, here || !flags.topology.empty(), job.variables));
  if (sizes.size() == 1) job.exec.local_size = *sizes.begin();
  job.exec.threads_given = flags.threads.has_value();
  job.exec.comm_core_given = flags.comm_core.has_value();
  job.exec.openmp = RuntimeOf(choices.openmp);
  if (!job.variables.Has("OPENBLAS_CORETYPE")) {
    job.exec.openblas = OpenBlasCandidate(libraries);
  }
  if (flags.dry_run && !job.exec.openblas.empty()) {
    const std::string core =
        flags.topology.empty()
            ? surroundings.better_openblas_core(job.exec.openblas)
            : "";
    job.variables.Note(absl::StrCat(
        "each node sets OPENBLAS_CORETYPE if OpenBLAS would take the kernels "
        "of an old processor",
        core.empty() ? "" : absl::StrCat("; here: ", core)));
  }
  job.exec.output_dir = flags.output_dir;
  for (const Variable& change : job.variables.changes()) {
    job.exec.settings.push_back(absl::StrCat(change.name, "=", change.value));
  }
  job.exec.program = flags.program;

  HVDLITE_ASSIGN_OR_RETURN(
      job.launch, LaunchOptionsOf(flags, surroundings, allocation, job.hosts,
                                  job.variables));
  job.exec.bound_by_launcher = job.launch.launcher.launcher == Launcher::kPjsub;

  job.command = LauncherCommand(job.launch);
  const std::vector<std::string> rank_command =
      ExecRankCommand(surroundings.self, job.exec);
  job.command.insert(job.command.end(), rank_command.begin(),
                     rank_command.end());
  job.notes = job.variables.notes();
  return job;
}

}  // namespace hvdlite::launch
