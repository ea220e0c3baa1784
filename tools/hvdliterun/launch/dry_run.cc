#include "tools/hvdliterun/launch/dry_run.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "support/processor.h"
#include "tools/hvdliterun/plan/settings.h"

namespace hvdlite::launch {
namespace {

std::string Quoted(const std::string& argument) {
  const bool plain =
      !argument.empty() &&
      std::all_of(argument.begin(), argument.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
               absl::string_view("_-+=:,./@%").find(c) !=
                   absl::string_view::npos;
      });
  if (plain) return argument;
  return absl::StrCat("'", absl::StrReplaceAll(argument, {{"'", "'\\''"}}),
                      "'");
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

// The plan of one rank of a host, as its node will make it.
Json ToJson(const Job& job, size_t local_rank, const RankPlan& plan,
            std::vector<std::string>& notes) {
  Variables variables = job.variables;
  AddRankVariables(job.machine, plan, job.exec.choices, variables);
  for (const std::string& note : variables.notes()) {
    if (!absl::c_linear_search(notes, note)) notes.push_back(note);
  }
  std::vector<Variable> own = variables.list();
  const std::vector<Variable> common = job.variables.list();
  std::erase_if(own, [&](const Variable& variable) {
    return absl::c_linear_search(common, variable);
  });
  const std::optional<int> cpu = CoordinatorCpu(job.machine, plan);
  return {
      {"local_rank", local_rank},
      {"cpus", plan.cpus},
      {"threads", plan.threads},
      {"coordinator_cpu", cpu.has_value() ? Json(*cpu) : Json()},
      {"memory", std::string(MemoryPolicyName(job.exec.plan.memory.policy))},
      {"memory_nodes", plan.memory_nodes},
      {"oversubscribed", plan.oversubscribed},
      {"environment", ToJson(own)}};
}

// Groups hosts with the same number of ranks, because they have the same plan.
Json GroupsOf(const Job& job, std::vector<std::string>& notes) {
  Json hosts = Json::array();
  for (const Host& host : job.hosts) {
    const auto alike = absl::c_find_if(hosts, [&](const Json& group) {
      return group["ranks_each"] == host.slots;
    });
    if (alike != hosts.end()) {
      (*alike)["names"].push_back(host.name);
      continue;
    }
    const auto plans = PlanHost(job.machine, host.slots, job.exec.plan);
    Json group = {{"names", Json::array({host.name})},
                  {"ranks_each", host.slots},
                  {"planned", plans.ok()}};
    // If there is no plan, each node makes its own; MakeJob has noted why.
    for (size_t rank = 0; plans.ok() && rank < plans->size(); ++rank) {
      group["ranks"].push_back(ToJson(job, rank, (*plans)[rank], notes));
    }
    hosts.push_back(std::move(group));
  }
  return hosts;
}

// The content of both formats.
Json PlanOf(const Job& job) {
  std::vector<std::string> notes = job.notes;
  Json hosts = GroupsOf(job, notes);
  if (job.exec.bound_by_launcher) {
    notes.push_back(
        "Fujitsu's mpiexec binds ranks by the job's --mpi options; each rank "
        "uses the CPUs that it gets");
  }
  Json json = {
      {"format", 1},
      {"ranks", job.ranks},
      {"allocation", job.allocation},
      {"machine_from", job.machine_from},
      {"machine", job.machine.Describe()},
      {"openmp",
       std::string(support::OpenMpRuntimeName(job.exec.choices.openmp))},
      {"command", job.command},
      {"launcher_environment", Json::object()},
      {"environment", ToJson(job.variables.list())},
      {"hosts", std::move(hosts)},
      {"openblas_core_here", job.openblas_core_here},
      {"notes", notes}};
  for (const auto& [name, value] : job.launcher_environment) {
    json["launcher_environment"][name] = value;
  }
  return json;
}

std::string TextOf(const Json& json) { return json.get<std::string>(); }

std::string JoinTexts(const Json& list, const char* separator) {
  return absl::StrJoin(list.get<std::vector<std::string>>(), separator);
}

void AppendVariables(const Json& variables, std::string& text) {
  for (const Json& variable : variables) {
    absl::StrAppendFormat(
        &text, "  %-50s %s\n",
        absl::StrCat(TextOf(variable["name"]), "=", TextOf(variable["value"])),
        TextOf(variable["source"]));
  }
}

// The local ranks that compute on a core ("0", "0+1"); "0c" for a coordinator;
// "." for none.
std::string MarkOf(const MachineCore& core, const Json& ranks) {
  const int cpu = core.cpus.front();
  std::string mark;
  for (const Json& rank : ranks) {
    if (!absl::c_linear_search(rank["cpus"], cpu)) continue;
    absl::StrAppend(&mark, mark.empty() ? "" : "+",
                    rank["local_rank"].get<int>(),
                    rank["coordinator_cpu"] == cpu ? "c" : "");
  }
  return mark.empty() ? "." : mark;
}

void AppendCoreMap(const Machine& machine, const Json& ranks,
                   std::string& text) {
  std::map<std::pair<int, int>, std::vector<std::string>> rows;
  for (const MachineCore& core : machine.cores) {
    rows[{core.package, core.numa_node}].push_back(MarkOf(core, ranks));
  }
  for (const auto& [place, marks] : rows) {
    absl::StrAppend(&text, "  package ", place.first, ", NUMA node ",
                    place.second, ": ", absl::StrJoin(marks, " "), "\n");
  }
}

void AppendRank(const Json& rank, std::string& text) {
  const auto threads = rank["threads"].get<int>();
  const Json& coordinator = rank["coordinator_cpu"];
  const std::string nodes = support::FormatCpuList(rank["memory_nodes"]);
  absl::StrAppend(
      &text, "  local rank ", rank["local_rank"].get<int>(), ": CPUs ",
      support::FormatCpuList(rank["cpus"]), ", ", threads,
      threads == 1 ? " thread" : " threads", ", coordinator ",
      coordinator.is_null() ? "none" : "CPU " + coordinator.dump(), ", memory ",
      TextOf(rank["memory"]), nodes.empty() ? "" : " ", nodes,
      rank["oversubscribed"] == true ? ", OVERSUBSCRIBED" : "", "\n");
}

void AppendHosts(const Machine& machine, const Json& hosts, std::string& text) {
  const auto ranks_each = hosts["ranks_each"].get<int>();
  absl::StrAppend(&text, "\n", JoinTexts(hosts["names"], " "), ": ", ranks_each,
                  ranks_each == 1 ? " rank" : " ranks",
                  hosts["names"].size() > 1 ? " each" : "", "\n");
  if (hosts["planned"] == false) {
    absl::StrAppend(&text, "  each node makes its own plan\n");
    return;
  }
  for (const Json& rank : hosts["ranks"]) AppendRank(rank, text);
  AppendCoreMap(machine, hosts["ranks"], text);
  for (const Json& rank : hosts["ranks"]) {
    absl::StrAppend(&text, " environment of local rank ",
                    rank["local_rank"].get<int>(), ":\n");
    AppendVariables(rank["environment"], text);
  }
}

}  // namespace

std::string ShellCommand(const std::vector<std::string>& arguments) {
  return absl::StrJoin(arguments, " ",
                       [](std::string* out, const std::string& argument) {
                         absl::StrAppend(out, Quoted(argument));
                       });
}

std::string RenderDryRun(const Job& job) {
  const Json plan = PlanOf(job);
  std::string text =
      absl::StrCat("ranks: ", job.ranks, " on ", job.hosts.size(),
                   job.hosts.size() == 1 ? " host (" : " hosts (",
                   job.allocation, ")\n", "every host is assumed to be like ",
                   job.machine_from, ": ", job.machine.Describe(),
                   "\nOpenMP: ", TextOf(plan["openmp"]), "\n\ncommand:\n  ");
  for (const auto& [name, value] : job.launcher_environment) {
    absl::StrAppend(&text, name, "=", Quoted(value), " ");
  }
  absl::StrAppend(&text, ShellCommand(job.command),
                  "\n\nenvironment of every rank:\n");
  AppendVariables(plan["environment"], text);
  for (const Json& hosts : plan["hosts"]) AppendHosts(job.machine, hosts, text);
  if (!plan["notes"].empty()) {
    absl::StrAppend(&text, "\nnotes:\n- ", JoinTexts(plan["notes"], "\n- "),
                    "\n");
  }
  return text;
}

std::string DryRunJson(const Job& job) {
  // Names and values may be invalid UTF-8.
  return PlanOf(job).dump(-1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace hvdlite::launch
