#include "tools/hvdliterun/launch/dry_run.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "support/processor.h"
#include "tools/hvdliterun/plan/settings.h"

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

// A rank of a host, as its node will plan it.
struct PlannedRank {
  RankPlan plan;
  std::vector<Variable> environment;  // on top of that of every rank
};

// Hosts with equally many ranks, which are planned alike.
struct PlannedHosts {
  int ranks_each = 0;
  std::vector<std::string> names = {};
  // None: the nodes plan for themselves; MakeJob has noted why.
  std::optional<std::vector<PlannedRank>> ranks = {};
};

// What both renderings are made of, so that they cannot disagree.
struct DryRunPlan {
  std::vector<Variable> environment;  // of every rank
  std::vector<PlannedHosts> hosts;    // in the order of the job's
  std::vector<std::string> notes;
};

PlannedRank PlanRank(const Job& job, const RankPlan& plan,
                     std::vector<std::string>& notes) {
  const Variables variables = OfRank(job, plan);
  PlannedRank rank = {.plan = plan, .environment = variables.list()};
  const std::vector<Variable> common = job.variables.list();
  std::erase_if(rank.environment, [&](const Variable& variable) {
    return std::find(common.begin(), common.end(), variable) != common.end();
  });
  for (const std::string& note : variables.notes()) {
    if (std::find(notes.begin(), notes.end(), note) == notes.end()) {
      notes.push_back(note);
    }
  }
  return rank;
}

DryRunPlan PlanOf(const Job& job) {
  DryRunPlan plan = {
      .environment = job.variables.list(), .hosts = {}, .notes = job.notes};
  for (const Host& host : job.hosts) {
    auto group = std::find_if(plan.hosts.begin(), plan.hosts.end(),
                              [&](const PlannedHosts& hosts) {
                                return hosts.ranks_each == host.slots;
                              });
    if (group == plan.hosts.end()) {
      plan.hosts.push_back({.ranks_each = host.slots});
      group = plan.hosts.end() - 1;
    }
    group->names.push_back(host.name);
  }
  for (PlannedHosts& hosts : plan.hosts) {
    const auto ranks = PlanHost(job.machine, hosts.ranks_each, job.exec.plan);
    if (!ranks.ok()) continue;
    hosts.ranks.emplace();
    for (const RankPlan& rank : *ranks) {
      hosts.ranks->push_back(PlanRank(job, rank, plan.notes));
    }
  }
  if (job.exec.bound_by_launcher) {
    plan.notes.push_back(
        "Fujitsu's mpiexec binds ranks by the job's --mpi options; each rank "
        "takes the CPUs that it gets");
  }
  return plan;
}

// Of each core: which local ranks compute there ("0", "0+1"), "0c" for a
// coordinator's, "." for none.
std::vector<std::string> MarksOf(const Machine& machine,
                                 const std::vector<PlannedRank>& ranks) {
  std::vector<std::string> marks(machine.cores.size());
  const auto mark = [&](size_t core, const std::string& text) {
    absl::StrAppend(&marks[core], marks[core].empty() ? "" : "+", text);
  };
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankPlan& plan = ranks[rank].plan;
    for (const size_t core : plan.compute_cores) {
      mark(core, absl::StrCat(rank));
    }
    if (plan.comm_core.has_value()) {
      mark(*plan.comm_core, absl::StrCat(rank, "c"));
    }
  }
  for (std::string& text : marks) {
    if (text.empty()) text = ".";
  }
  return marks;
}

void AppendCoreMap(const Machine& machine,
                   const std::vector<PlannedRank>& ranks, std::string& text) {
  const std::vector<std::string> marks = MarksOf(machine, ranks);
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

std::string MemoryOf(const Job& job, const RankPlan& plan) {
  const absl::string_view policy =
      MemoryPolicyName(job.exec.plan.memory.policy);
  return plan.memory_nodes.empty()
             ? std::string(policy)
             : absl::StrCat(policy, " ",
                            support::FormatCpuList(plan.memory_nodes));
}

void AppendRank(const Job& job, size_t rank, const RankPlan& plan,
                std::string& text) {
  const std::optional<int> cpu = CoordinatorCpu(job.machine, plan);
  absl::StrAppend(&text, "  local rank ", rank, ": CPUs ",
                  support::FormatCpuList(plan.cpus), ", ", plan.threads,
                  plan.threads == 1 ? " thread" : " threads", ", coordinator ",
                  cpu.has_value() ? absl::StrCat("CPU ", *cpu) : "none",
                  ", memory ", MemoryOf(job, plan),
                  plan.oversubscribed ? ", OVERSUBSCRIBED" : "", "\n");
}

void AppendHosts(const Job& job, const PlannedHosts& hosts, std::string& text) {
  absl::StrAppend(&text, "\n", absl::StrJoin(hosts.names, " "), ": ",
                  hosts.ranks_each, hosts.ranks_each == 1 ? " rank" : " ranks",
                  hosts.names.size() > 1 ? " each" : "", "\n");
  if (!hosts.ranks.has_value()) {
    absl::StrAppend(&text, "  planned by the nodes themselves\n");
    return;
  }
  for (size_t rank = 0; rank < hosts.ranks->size(); ++rank) {
    AppendRank(job, rank, (*hosts.ranks)[rank].plan, text);
  }
  AppendCoreMap(job.machine, *hosts.ranks, text);
  for (size_t rank = 0; rank < hosts.ranks->size(); ++rank) {
    absl::StrAppend(&text, " environment of local rank ", rank, ":\n");
    AppendVariables((*hosts.ranks)[rank].environment, text);
  }
}

// "NAME=VALUE " for each, before a command.
std::string Assignments(
    const std::vector<std::pair<std::string, std::string>>& variables) {
  std::string text;
  for (const auto& [name, value] : variables) {
    absl::StrAppend(&text, name, "=", Quoted(value), " ");
  }
  return text;
}

using Json = nlohmann::ordered_json;

Json ToJson(const std::vector<Variable>& variables) {
  Json list = Json::array();
  for (const Variable& variable : variables) {
    list.push_back({{"name", variable.name},
                    {"value", variable.value},
                    {"source", variable.source}});
  }
  return list;
}

Json ToJson(const Job& job, size_t number, const PlannedRank& rank) {
  const std::optional<int> cpu = CoordinatorCpu(job.machine, rank.plan);
  return {
      {"local_rank", number},
      {"cpus", rank.plan.cpus},
      {"threads", rank.plan.threads},
      {"coordinator_cpu", cpu.has_value() ? Json(*cpu) : Json()},
      {"memory", std::string(MemoryPolicyName(job.exec.plan.memory.policy))},
      {"memory_nodes", rank.plan.memory_nodes},
      {"oversubscribed", rank.plan.oversubscribed},
      {"environment", ToJson(rank.environment)}};
}

Json ToJson(const Job& job, const PlannedHosts& hosts) {
  Json json = {{"names", hosts.names},
               {"ranks_each", hosts.ranks_each},
               {"planned", hosts.ranks.has_value()}};
  if (!hosts.ranks.has_value()) return json;
  json["ranks"] = Json::array();
  for (size_t rank = 0; rank < hosts.ranks->size(); ++rank) {
    json["ranks"].push_back(ToJson(job, rank, (*hosts.ranks)[rank]));
  }
  return json;
}

}  // namespace

std::string ShellCommand(const std::vector<std::string>& words) {
  return absl::StrJoin(words, " ",
                       [](std::string* out, const std::string& word) {
                         absl::StrAppend(out, Quoted(word));
                       });
}

std::string RenderDryRun(const Job& job) {
  const DryRunPlan plan = PlanOf(job);
  std::string text = absl::StrCat(
      "ranks: ", job.ranks, " on ", job.hosts.size(),
      job.hosts.size() == 1 ? " host (" : " hosts (", job.allocation, ")\n",
      "every host is taken to be like ", job.machine_from, ": ",
      job.machine.Describe(),
      "\nOpenMP: ", support::OpenMpRuntimeName(job.exec.openmp),
      "\n\ncommand:\n  ", Assignments(job.launcher_environment),
      ShellCommand(job.command), "\n\nenvironment of every rank:\n");
  AppendVariables(plan.environment, text);
  for (const PlannedHosts& hosts : plan.hosts) AppendHosts(job, hosts, text);
  if (!plan.notes.empty()) absl::StrAppend(&text, "\nnotes:\n");
  for (const std::string& note : plan.notes) {
    absl::StrAppend(&text, "- ", note, "\n");
  }
  return text;
}

std::string DryRunJson(const Job& job) {
  const DryRunPlan plan = PlanOf(job);
  Json json = {
      {"format", 1},
      {"ranks", job.ranks},
      {"allocation", job.allocation},
      {"machine_from", job.machine_from},
      {"machine", job.machine.Describe()},
      {"openmp", std::string(support::OpenMpRuntimeName(job.exec.openmp))},
      {"command", job.command},
      {"launcher_environment", Json::object()},
      {"environment", ToJson(plan.environment)},
      {"hosts", Json::array()},
      {"openblas_core_here", job.openblas_core_here},
      {"notes", plan.notes}};
  for (const auto& [name, value] : job.launcher_environment) {
    json["launcher_environment"][name] = value;
  }
  for (const PlannedHosts& hosts : plan.hosts) {
    json["hosts"].push_back(ToJson(job, hosts));
  }
  // Names and values need not be valid text.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hvdlite::launch
