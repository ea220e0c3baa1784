#include "tools/hvdliterun/plan/dry_run.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "tools/hvdliterun/plan/settings.h"
#include "tools/support/processor.h"

namespace hvdlite::launch {
namespace {

std::string Quoted(const std::string& word) {
  const bool plain =
      !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
               absl::string_view("_-+=:,./@%").find(c) !=
                   absl::string_view::npos;
      });
  if (plain) return word;
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

void AppendVariables(const std::vector<Variable>& variables,
                     std::string& text) {
  for (const Variable& variable : variables) {
    absl::StrAppend(
        &text, absl::StrFormat("  %-50s %s\n",
                               absl::StrCat(variable.name, "=", variable.value),
                               variable.source));
  }
}

Variables OfRank(const Job& job, const RankPlan& plan) {
  Variables variables = job.variables;
  AddRankVariables(job.machine, plan,
                   {.openmp = job.exec.openmp,
                    .threads_given = job.exec.threads_given,
                    .comm_core_given = job.exec.comm_core_given},
                   variables);
  return variables;
}

// Of each core: which local ranks compute there ("0", "0+1"), "0c" for a
// coordinator's, "." for none.
std::vector<std::string> MarksOf(const Machine& machine,
                                 const std::vector<RankPlan>& plans) {
  std::vector<std::string> marks(machine.cores.size());
  const auto mark = [&](size_t core, const std::string& text) {
    absl::StrAppend(&marks[core], marks[core].empty() ? "" : "+", text);
  };
  for (size_t rank = 0; rank < plans.size(); ++rank) {
    for (const size_t core : plans[rank].compute_cores) {
      mark(core, absl::StrCat(rank));
    }
    if (plans[rank].comm_core.has_value()) {
      mark(*plans[rank].comm_core, absl::StrCat(rank, "c"));
    }
  }
  for (std::string& text : marks) {
    if (text.empty()) text = ".";
  }
  return marks;
}

void AppendCoreMap(const Machine& machine, const std::vector<RankPlan>& plans,
                   std::string& text) {
  const std::vector<std::string> marks = MarksOf(machine, plans);
  std::map<std::pair<int, int>, std::vector<std::string>> rows;
  for (size_t core = 0; core < marks.size(); ++core) {
    const MachineCore& place = machine.cores[core];
    rows[{place.package, place.numa_node}].push_back(marks[core]);
  }
  for (const auto& [place, cores] : rows) {
    absl::StrAppend(&text, "  package ", place.first, ", NUMA node ",
                    place.second, ": ", absl::StrJoin(cores, " "), "\n");
  }
}

std::string MemoryText(MemoryPolicy policy, const RankPlan& plan) {
  return plan.memory_nodes.empty()
             ? std::string(MemoryPolicyName(policy))
             : absl::StrCat(MemoryPolicyName(policy), " ",
                            base::FormatCpuList(plan.memory_nodes));
}

void AppendRank(const Job& job, size_t rank, const RankPlan& plan,
                std::string& text) {
  const std::optional<int> cpu = CoordinatorCpu(job.machine, plan);
  absl::StrAppend(&text, "  local rank ", rank, ": CPUs ",
                  base::FormatCpuList(plan.cpus), ", ", plan.threads,
                  plan.threads == 1 ? " thread" : " threads", ", coordinator ",
                  cpu.has_value() ? absl::StrCat("CPU ", *cpu) : "none",
                  ", memory ", MemoryText(job.exec.plan.memory, plan),
                  plan.oversubscribed ? ", OVERSUBSCRIBED" : "", "\n");
}

void AppendHosts(const Job& job, int size,
                 const std::vector<std::string>& names, std::string& text,
                 std::vector<std::string>& notes) {
  const auto plans = PlanHost(job.machine, size, job.exec.plan);
  absl::StrAppend(&text, "\n", absl::StrJoin(names, " "), ": ", size,
                  size == 1 ? " rank" : " ranks",
                  names.size() > 1 ? " each" : "", "\n");
  if (!plans.ok()) {  // MakeJob has noted why
    absl::StrAppend(&text, "  planned by the nodes themselves\n");
    return;
  }
  for (size_t rank = 0; rank < plans->size(); ++rank) {
    AppendRank(job, rank, (*plans)[rank], text);
  }
  AppendCoreMap(job.machine, *plans, text);
  for (size_t rank = 0; rank < plans->size(); ++rank) {
    const Variables variables = OfRank(job, (*plans)[rank]);
    std::vector<Variable> own = variables.list();
    const std::vector<Variable> common = job.variables.list();
    std::erase_if(own, [&](const Variable& variable) {
      return std::find(common.begin(), common.end(), variable) != common.end();
    });
    absl::StrAppend(&text, " environment of local rank ", rank, ":\n");
    AppendVariables(own, text);
    for (const std::string& note : variables.notes()) {
      if (std::find(notes.begin(), notes.end(), note) == notes.end()) {
        notes.push_back(note);
      }
    }
  }
}

// "NAME=VALUE " for each, before a command.
std::string Assignments(
    const std::vector<std::pair<std::string, std::string>>& variables) {
  std::string text;
  for (const auto& [name, value] : variables) {
    absl::StrAppend(&text, name, "=", value, " ");
  }
  return text;
}

}  // namespace

std::string ShellCommand(const std::vector<std::string>& words) {
  return absl::StrJoin(words, " ",
                       [](std::string* out, const std::string& word) {
                         absl::StrAppend(out, Quoted(word));
                       });
}

std::string RenderDryRun(const Job& job) {
  std::string text = absl::StrCat(
      "ranks: ", job.ranks, " on ", job.hosts.size(),
      job.hosts.size() == 1 ? " host (" : " hosts (", job.allocation, ")\n",
      "every host is taken to be like ", job.machine_from, ": ",
      job.machine.Describe(), "\nOpenMP: ", OpenMpRuntimeName(job.exec.openmp),
      "\n\ncommand:\n  ", Assignments(job.launcher_environment),
      ShellCommand(job.command), "\n\nenvironment of every rank:\n");
  AppendVariables(job.variables.list(), text);
  // In the order of the hosts.
  std::vector<std::pair<int, std::vector<std::string>>> hosts_of_size;
  for (const Host& host : job.hosts) {
    auto group = std::find_if(
        hosts_of_size.begin(), hosts_of_size.end(),
        [&](const auto& entry) { return entry.first == host.slots; });
    if (group == hosts_of_size.end()) {
      hosts_of_size.push_back({host.slots, {}});
      group = hosts_of_size.end() - 1;
    }
    group->second.push_back(host.name);
  }
  std::vector<std::string> notes = job.notes;
  for (const auto& [size, names] : hosts_of_size) {
    AppendHosts(job, size, names, text, notes);
  }
  if (job.exec.bound_by_launcher) {
    notes.push_back(
        "Fujitsu's mpiexec binds ranks by the job's --mpi options; each rank "
        "takes the CPUs that it gets");
  }
  if (!notes.empty()) absl::StrAppend(&text, "\nnotes:\n");
  for (const std::string& note : notes)
    absl::StrAppend(&text, "- ", note, "\n");
  return text;
}

}  // namespace hvdlite::launch
