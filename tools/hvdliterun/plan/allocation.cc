#include "tools/hvdliterun/plan/allocation.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "tools/hvdliterun/plan/slurm_list.h"

namespace hvdlite::launch {
namespace {

using ReadFile =
    std::function<absl::StatusOr<std::string>(const std::string& path)>;

constexpr int kMaxSlots = 1'000'000;

void AddHost(std::vector<Host>& hosts, absl::string_view name, int slots) {
  for (Host& host : hosts) {
    if (host.name == name) {
      host.slots = std::min(host.slots + slots, kMaxSlots);
      return;
    }
  }
  hosts.push_back({.name = std::string(name), .slots = slots});
}

// Adds a host of the form "h:4" or "h".
absl::Status AddHostWithColon(std::vector<Host>& hosts, absl::string_view text,
                              const std::string& where) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  int slots = 1;
  if (parts.first.empty() || (absl::StrContains(text, ":") &&
                              (!absl::SimpleAtoi(parts.second, &slots) ||
                               slots < 1 || slots > kMaxSlots))) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": '", text, "' is not a host such as n01 or n01:4"));
  }
  AddHost(hosts, parts.first, slots);
  return absl::OkStatus();
}

bool SlurmWasAskedForTasks(const base::Environment& environment) {
  constexpr std::array kVariables = {"SLURM_NTASKS", "SLURM_NPROCS",
                                     "SLURM_NTASKS_PER_NODE"};
  return std::any_of(
      kVariables.begin(), kVariables.end(),
      [&](const char* name) { return environment.get(name).has_value(); });
}

// If srun started this process on some of the job's nodes, then
// SLURM_TASKS_PER_NODE counts the tasks of the step. An interactive step
// (salloc with use_interactive_step) has one task, but the variable counts the
// tasks of the job.
std::string SlurmHostsVariable(const base::Environment& environment) {
  const auto of_step = environment.get("SLURM_STEP_TASKS_PER_NODE");
  if (of_step.has_value() && environment.get("SLURM_STEP_NODELIST") &&
      of_step == environment.get("SLURM_TASKS_PER_NODE")) {
    return "SLURM_STEP_NODELIST";
  }
  return environment.get("SLURM_JOB_NODELIST") ? "SLURM_JOB_NODELIST"
                                               : "SLURM_NODELIST";
}

absl::StatusOr<Allocation> SlurmAllocation(const base::Environment& environment,
                                           const std::string& job) {
  Allocation allocation = {.hosts = {},
                           .source = absl::StrCat("SLURM job ", job),
                           .system = BatchSystem::kSlurm};
  const std::string hosts = SlurmHostsVariable(environment);
  const std::optional<std::string> list = environment.get(hosts);
  if (!list.has_value()) {
    return absl::InvalidArgumentError(
        "SLURM_JOB_ID is set, but SLURM_JOB_NODELIST is not: name the hosts "
        "with -H, or unset SLURM_JOB_ID to run on this host");
  }
  absl::StatusOr<std::vector<std::string>> names = ExpandHostList(*list);
  if (!names.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(hosts, ": ", names.status().message()));
  }
  // SLURM_TASKS_PER_NODE counts tasks if the job requests some, else CPUs.
  std::string variable = "SLURM_TASKS_PER_NODE";
  std::optional<std::string> counts = environment.get(variable);
  allocation.slots_are_known = SlurmWasAskedForTasks(environment);
  if (!counts.has_value()) {
    variable = "SLURM_JOB_CPUS_PER_NODE";
    counts = environment.get(variable);
    allocation.slots_are_known = false;
  }
  std::vector<int> slots(names->size(), 1);
  if (counts.has_value()) {
    absl::StatusOr<std::vector<int>> expanded = ExpandCounts(*counts);
    if (!expanded.ok() || expanded->size() != names->size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(variable, "=", *counts, " does not match the ",
                       names->size(), " hosts of ", hosts, "=", *list));
    }
    slots = *std::move(expanded);
  }
  for (size_t i = 0; i < names->size(); ++i) {
    allocation.hosts.push_back({.name = (*names)[i], .slots = slots[i]});
  }
  return allocation;
}

// Reads the file that the batch system's `variable` names. Each line begins
// with a host. With `has_slots` the number of slots follows; else a line is a
// slot.
absl::StatusOr<Allocation> FileAllocation(BatchSystem system,
                                          const std::string& variable,
                                          const std::string& path,
                                          bool has_slots,
                                          const ReadFile& read_file) {
  const absl::StatusOr<std::string> text = read_file(path);
  if (!text.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        variable, "=", path, ": ", text.status().message(),
        ": name the hosts with -H, or unset the variable to run on this host"));
  }
  Allocation allocation = {.hosts = {},
                           .source = absl::StrCat(variable, " ", path),
                           .system = system};
  for (const absl::string_view line :
       absl::StrSplit(*text, '\n', absl::SkipWhitespace())) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    int slots = 1;
    if (has_slots && (words.size() < 2 || !absl::SimpleAtoi(words[1], &slots) ||
                      slots < 1 || slots > kMaxSlots)) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": '", line, "' is not a line 'host slots queue processors'"));
    }
    AddHost(allocation.hosts, words[0], slots);
  }
  if (!allocation.hosts.empty()) return allocation;
  return absl::InvalidArgumentError(absl::StrCat(
      allocation.source,
      " names no host: name them with -H, or unset the variable to run on this "
      "host"));
}

// PBS Professional and Torque: the file has one line for each slot.
absl::StatusOr<Allocation> PbsAllocation(const std::string& path,
                                         const ReadFile& read_file) {
  HVDLITE_ASSIGN_OR_RETURN(
      Allocation allocation,
      FileAllocation(BatchSystem::kPbs, "PBS_NODEFILE", path,
                     /*has_slots=*/false, read_file));
  // One line per host means mpiprocs=1, or select=N without mpiprocs. The
  // latter does not give the number of ranks.
  allocation.slots_are_known =
      allocation.slots() > static_cast<int>(allocation.hosts.size());
  allocation.slots_are_likely = !allocation.slots_are_known;
  return allocation;
}

// The number of nodes of "12" or of a box of nodes, "2x3x2"; 0 for anything
// else.
int NodesOfShape(absl::string_view shape) {
  int nodes = 1;
  for (const absl::string_view text : absl::StrSplit(shape, 'x')) {
    int side = 0;
    if (!absl::SimpleAtoi(text, &side) || side < 1 ||
        side > kMaxSlots / nodes) {
      return 0;
    }
    nodes *= side;
  }
  return nodes;
}

// Fujitsu's batch system: mpiexec knows the nodes, so their names are not
// needed.
absl::StatusOr<Allocation> PjmAllocation(const base::Environment& environment,
                                         const std::string& job) {
  int per_node = 1;
  const std::string node_text = environment.get("PJM_NODE").value_or("1");
  const int nodes = NodesOfShape(node_text);
  const std::optional<std::string> proc = environment.get("PJM_PROC_BY_NODE");
  if (nodes == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "PJM_NODE=", node_text,
        " is not a number of nodes such as 12 or 2x3x2: correct it, or unset "
        "PJM_JOBID to run on this host"));
  }
  if (proc.has_value() && (!absl::SimpleAtoi(*proc, &per_node) ||
                           per_node < 1 || per_node > kMaxSlots)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "PJM_PROC_BY_NODE=", *proc,
        " is not a number of ranks: correct it, or unset it and use -np N"));
  }
  Allocation allocation = {.hosts = {},
                           .source = absl::StrCat("PJM job ", job),
                           .system = BatchSystem::kPjm,
                           .slots_are_known = proc.has_value()};
  for (int node = 0; node < nodes; ++node) {
    allocation.hosts.push_back(
        {.name = absl::StrCat("node", node), .slots = per_node});
  }
  return allocation;
}

}  // namespace

std::string ShortName(const std::string& host) {
  return host.substr(0, host.find('.'));
}

std::string HostList(const std::vector<Host>& hosts) {
  return absl::StrJoin(hosts, ",", [](std::string* out, const Host& host) {
    absl::StrAppend(out, host.name, ":", host.slots);
  });
}

int Allocation::slots() const {
  const int64_t slots = std::accumulate(
      hosts.begin(), hosts.end(), int64_t{0},
      [](int64_t sum, const Host& host) { return sum + host.slots; });
  return static_cast<int>(
      std::min<int64_t>(slots, std::numeric_limits<int>::max()));
}

absl::StatusOr<Allocation> AllocationOfHostList(absl::string_view list) {
  Allocation allocation = {.hosts = {}, .source = "-H"};
  for (const absl::string_view item : absl::StrSplit(list, ',')) {
    HVDLITE_RETURN_IF_ERROR(AddHostWithColon(
        allocation.hosts, absl::StripAsciiWhitespace(item), "-H"));
  }
  return allocation;
}

absl::StatusOr<Allocation> AllocationOfHostfile(absl::string_view text,
                                                const std::string& name) {
  Allocation allocation = {.hosts = {},
                           .source = absl::StrCat("--hostfile ", name)};
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = line.substr(0, line.find('#'));
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) continue;
    if (words.size() == 1) {
      HVDLITE_RETURN_IF_ERROR(
          AddHostWithColon(allocation.hosts, words[0], name));
      continue;
    }
    int slots = 1;
    for (size_t i = 1; i < words.size(); ++i) {
      absl::string_view word = words[i];
      if (absl::ConsumePrefix(&word, "max_slots=") ||
          absl::ConsumePrefix(&word, "max-slots=")) {
        continue;
      }
      if (!absl::ConsumePrefix(&word, "slots=") ||
          !absl::SimpleAtoi(word, &slots) || slots < 1 || slots > kMaxSlots) {
        return absl::InvalidArgumentError(absl::StrCat(
            name, ": '", line, "' is not a line such as 'n01 slots=4'"));
      }
    }
    AddHost(allocation.hosts, words[0], slots);
  }
  if (allocation.hosts.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " names no host: add lines such as 'n01 slots=4'"));
  }
  return allocation;
}

BatchSystem DetectBatchSystem(const base::Environment& environment) {
  if (environment.get("PJM_JOBID").has_value()) return BatchSystem::kPjm;
  if (environment.get("SLURM_JOB_ID").has_value()) return BatchSystem::kSlurm;
  if (environment.get("PE_HOSTFILE").has_value()) return BatchSystem::kSge;
  if (environment.get("PBS_NODEFILE").has_value()) return BatchSystem::kPbs;
  return BatchSystem::kNone;
}

absl::StatusOr<Allocation> DetectAllocation(
    const base::Environment& environment, const ReadFile& read_file) {
  const auto value = [&](const char* name) {
    return environment.get(name).value_or("");
  };
  switch (DetectBatchSystem(environment)) {
    case BatchSystem::kPjm:
      return PjmAllocation(environment, value("PJM_JOBID"));
    case BatchSystem::kSlurm:
      return SlurmAllocation(environment, value("SLURM_JOB_ID"));
    case BatchSystem::kSge:
      // Grid Engine's lines are "host slots queue processors".
      return FileAllocation(BatchSystem::kSge, "PE_HOSTFILE",
                            value("PE_HOSTFILE"), /*has_slots=*/true,
                            read_file);
    case BatchSystem::kPbs:
      return PbsAllocation(value("PBS_NODEFILE"), read_file);
    case BatchSystem::kNone:
      break;
  }
  return Allocation{
      .hosts = {}, .source = "this host", .slots_are_known = false};
}

absl::StatusOr<std::vector<Host>> DealRanks(const Allocation& allocation,
                                            int ranks, bool oversubscribe) {
  if (allocation.hosts.empty()) return std::vector<Host>{{"localhost", ranks}};
  std::vector<Host> dealt;
  int left = ranks;
  const auto count = static_cast<int>(allocation.hosts.size());
  for (int i = 0; i < count; ++i) {
    const Host& host = allocation.hosts[static_cast<size_t>(i)];
    // If the slots are not known, ranks are distributed evenly.
    const int take = allocation.slots_are_known
                         ? std::min(left, host.slots)
                         : (ranks / count + (i < ranks % count ? 1 : 0));
    dealt.push_back({.name = host.name, .slots = take});
    left -= take;
  }
  if (left > 0 && !oversubscribe) {
    return absl::InvalidArgumentError(absl::StrCat(
        ranks, " ranks do not fit into the ", allocation.slots(), " slots of ",
        allocation.source,
        ": start fewer ranks, name more slots (-H host:slots), or share cores "
        "with --oversubscribe"));
  }
  for (size_t i = 0; left > 0; i = (i + 1) % dealt.size(), --left) {
    ++dealt[i].slots;
  }
  std::erase_if(dealt, [](const Host& host) { return host.slots == 0; });
  return dealt;
}

}  // namespace hvdlite::launch
