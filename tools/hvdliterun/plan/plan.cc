#include "tools/hvdliterun/plan/plan.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "support/processor.h"

namespace hvdlite::launch {
namespace {

using Cores = std::vector<size_t>;

constexpr std::array kDomains = {
    std::pair(Domain::kNode, "node"), std::pair(Domain::kSocket, "socket"),
    std::pair(Domain::kNuma, "numa"), std::pair(Domain::kCore, "core")};
constexpr std::array kPolicies = {
    std::pair(MemoryPolicy::kLocal, "local"),
    std::pair(MemoryPolicy::kInterleave, "interleave"),
    std::pair(MemoryPolicy::kBind, "bind"),
    std::pair(MemoryPolicy::kPreferred, "preferred"),
    std::pair(MemoryPolicy::kInherit, "inherit")};

template <typename Names, typename Value>
absl::string_view NameIn(const Names& names, Value value) {
  for (const auto& [known, name] : names) {
    if (known == value) return name;
  }
  return "?";
}

template <typename Value, typename Names>
absl::StatusOr<Value> ValueIn(const Names& names, absl::string_view text) {
  for (const auto& [value, name] : names) {
    if (text == name) return value;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text, "' is not one of ",
      absl::StrJoin(names, ", ", [](std::string* out, const auto& entry) {
        absl::StrAppend(out, entry.second);
      })));
}

std::vector<Cores> DomainsOf(const Machine& machine, Domain domain) {
  std::map<int, Cores> groups;
  for (size_t i = 0; i < machine.cores.size(); ++i) {
    const MachineCore& core = machine.cores[i];
    int group = 0;
    if (domain == Domain::kSocket) group = core.package;
    if (domain == Domain::kNuma) group = core.numa_node;
    if (domain == Domain::kCore) group = static_cast<int>(i);
    groups[group].push_back(i);
  }
  std::vector<Cores> domains;
  for (auto& [group, cores] : groups) domains.push_back(std::move(cores));
  return domains;
}

// The cores of every rank; empty if there are not enough cores.
std::vector<Cores> SharesOf(const std::vector<Cores>& domains, int ranks) {
  const auto count = static_cast<size_t>(ranks);
  if (count <= domains.size()) {
    return std::vector<Cores>(domains.begin(),
                              domains.begin() + static_cast<long>(count));
  }
  std::vector<std::vector<size_t>> ranks_of(domains.size());
  for (size_t rank = 0; rank < count; ++rank) {
    ranks_of[rank * domains.size() / count].push_back(rank);
  }
  // All ranks work in step, so more cores for some ranks would be useless.
  size_t share = domains.front().size();
  for (size_t i = 0; i < domains.size(); ++i) {
    share = std::min(share, domains[i].size() / ranks_of[i].size());
  }
  std::vector<Cores> shares(count);
  for (size_t i = 0; i < domains.size(); ++i) {
    for (size_t j = 0; j < ranks_of[i].size(); ++j) {
      const auto begin = domains[i].begin() + static_cast<long>(j * share);
      shares[ranks_of[i][j]].assign(begin, begin + static_cast<long>(share));
    }
  }
  return shares;
}

// The same choice as hvdlite's own: the last core on the NUMA node of the first
// one.
size_t LastOnTheFirstNumaNode(const Machine& machine, const Cores& cores) {
  size_t last = cores.back();
  for (const size_t core : cores) {
    if (machine.cores[core].numa_node ==
        machine.cores[cores.front()].numa_node) {
      last = core;
    }
  }
  return last;
}

absl::StatusOr<std::optional<size_t>> CommCoreOf(const Machine& machine,
                                                 const Cores& share,
                                                 const PlanOptions& options) {
  const auto cores = static_cast<int>(share.size());
  switch (options.comm_core.kind) {
    case CommCore::Kind::kNone:
      return std::nullopt;
    case CommCore::Kind::kAuto: {
      // If fewer threads than cores are requested, a core is free anyway.
      const bool spare = options.threads.has_value()
                             ? *options.threads < cores
                             : cores >= kCoresForACommCore;
      if (!spare) return std::nullopt;
      return LastOnTheFirstNumaNode(machine, share);
    }
    case CommCore::Kind::kNumber:
      break;
  }
  if (options.comm_core.number >= cores || cores < 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--comm-core ", options.comm_core.number, ": each rank has ", cores,
        cores == 1 ? " core" : " cores",
        cores < 2 ? ", and it computes: use --comm-core none or fewer ranks"
                  : absl::StrCat(", from 0 to ", cores - 1,
                                 ": use one of these, none or auto")));
  }
  return share[static_cast<size_t>(options.comm_core.number)];
}

size_t CpusOf(const Machine& machine, const Cores& cores) {
  return std::accumulate(cores.begin(), cores.end(), size_t{0},
                         [&](size_t sum, size_t core) {
                           return sum + machine.cores[core].cpus.size();
                         });
}

absl::Status CheckMemoryNodes(const Machine& machine, const Memory& memory) {
  for (const int node : memory.nodes) {
    if (std::ranges::count(machine.memory_nodes, node) > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--mem ", MemoryText(memory), ": the host has no NUMA node ", node,
        "; its nodes are ", support::FormatCpuList(machine.memory_nodes)));
  }
  return absl::OkStatus();
}

// `nodes`: those of the rank's cores.
std::vector<int> MemoryNodes(const Machine& machine, const Memory& memory,
                             const std::vector<int>& nodes) {
  if (!memory.nodes.empty()) return memory.nodes;
  switch (memory.policy) {
    case MemoryPolicy::kInterleave:
      return machine.numa_nodes;
    case MemoryPolicy::kBind:
      return nodes;
    case MemoryPolicy::kPreferred:
      return {nodes.front()};
    case MemoryPolicy::kLocal:
    case MemoryPolicy::kInherit:
      break;
  }
  return {};
}

void FillIn(const Machine& machine, const Memory& memory, RankPlan& plan) {
  Cores all = plan.compute_cores;
  if (plan.comm_core.has_value()) all.push_back(*plan.comm_core);
  std::set<int> nodes;
  for (const size_t core : all) {
    plan.cpus.insert(plan.cpus.end(), machine.cores[core].cpus.begin(),
                     machine.cores[core].cpus.end());
    nodes.insert(machine.cores[core].numa_node);
  }
  std::sort(plan.cpus.begin(), plan.cpus.end());
  plan.memory_nodes =
      MemoryNodes(machine, memory, {nodes.begin(), nodes.end()});
}

// Plans for ranks that share all cores of their domain.
std::vector<RankPlan> OversubscribedPlans(const Machine& machine,
                                          const std::vector<Cores>& domains,
                                          int ranks,
                                          const PlanOptions& options) {
  std::vector<RankPlan> plans;
  for (int rank = 0; rank < ranks; ++rank) {
    RankPlan plan;
    plan.compute_cores = domains[static_cast<size_t>(rank) * domains.size() /
                                 static_cast<size_t>(ranks)];
    plan.threads = options.threads.value_or(1);
    plan.oversubscribed = true;
    FillIn(machine, options.memory, plan);
    plans.push_back(std::move(plan));
  }
  return plans;
}

std::vector<Preset> MakePresets() {
  // Settings of Fujitsu's large-page library: pages are allocated at the first
  // touch, so that they are on the NUMA node of the thread that uses them;
  // freed memory is kept; threads do not share the lock of one arena.
  const std::vector<std::pair<std::string, std::string>> large_pages = {
      {"XOS_MMM_L_HPAGE_TYPE", "hugetlbfs"},
      {"XOS_MMM_L_PAGING_POLICY", "demand:demand:demand"},
      {"XOS_MMM_L_ARENA_FREE", "2"},
      {"XOS_MMM_L_ARENA_LOCK_TYPE", "0"}};
  const std::vector<std::pair<std::string, std::string>> core_by_core = {
      {"KMP_AFFINITY", "granularity=fine,compact,1,0"}, {"KMP_BLOCKTIME", "1"}};
  return {
      // No core for the coordinator: it would be a twelfth of the rank's cores.
      {.name = "a64fx-numa",
       .help = "one rank per NUMA node of an A64FX (four ranks)",
       .domain = Domain::kNuma,
       .comm_core = CommCore{.kind = CommCore::Kind::kNone},
       .variables = large_pages},
      {.name = "a64fx-node",
       .help = "one rank on all 48 cores of an A64FX",
       .variables = large_pages},
      {.name = "xeon-socket",
       .help = "one rank per socket, each thread bound to a core",
       .domain = Domain::kSocket,
       .variables = core_by_core},
      {.name = "interleave",
       .help = "one rank on all sockets, memory interleaved page by page",
       .memory = {.policy = MemoryPolicy::kInterleave},
       .variables = core_by_core},
  };
}

}  // namespace

absl::string_view DomainName(Domain domain) { return NameIn(kDomains, domain); }

absl::string_view MemoryPolicyName(MemoryPolicy policy) {
  return NameIn(kPolicies, policy);
}

absl::StatusOr<Domain> ParseDomain(absl::string_view text) {
  return ValueIn<Domain>(kDomains, text);
}

absl::StatusOr<Placement> ParsePlacement(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  Placement placement;
  bool known = (parts.size() == 3 || parts.size() == 4) && parts[0] == "ppr" &&
               absl::SimpleAtoi(parts[1], &placement.ranks_per_domain) &&
               placement.ranks_per_domain > 0;
  if (known) {
    const absl::StatusOr<Domain> domain = ParseDomain(parts[2]);
    known = domain.ok();
    placement.domain = domain.value_or(Domain::kNode);
  }
  if (known && parts.size() == 4) {
    absl::string_view cores = parts[3];
    known = absl::ConsumePrefix(&cores, "pe=") &&
            absl::SimpleAtoi(cores, &placement.cores_per_rank.emplace()) &&
            *placement.cores_per_rank > 0;
  }
  if (known) return placement;
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text,
      "' is not ppr:N:DOMAIN or ppr:N:DOMAIN:pe=CORES with N ranks per node, "
      "socket, numa or core. hvdliterun accepts no other form of mpirun's "
      "--map-by; it binds the ranks itself (--map)"));
}

int RanksOf(const Placement& placement, const Machine& machine) {
  return placement.ranks_per_domain *
         static_cast<int>(DomainsOf(machine, placement.domain).size());
}

absl::StatusOr<Memory> ParseMemory(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> sides =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  const auto policy = ValueIn<MemoryPolicy>(kPolicies, sides.first);
  const bool names_nodes = sides.first != text;
  const bool may_name_nodes = policy.ok() && *policy != MemoryPolicy::kLocal &&
                              *policy != MemoryPolicy::kInherit;
  if (!policy.ok() || (names_nodes && !may_name_nodes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' is not one of ", kMemoryWords));
  }
  Memory memory = {.policy = *policy};
  if (!names_nodes) return memory;
  HVDLITE_ASSIGN_OR_RETURN(memory.nodes, support::ParseCpuList(sides.second));
  const size_t most = *policy == MemoryPolicy::kPreferred ? 1 : SIZE_MAX;
  if (memory.nodes.empty() || memory.nodes.size() > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' names ", memory.nodes.size(),
                     " NUMA nodes: use ", kMemoryWords));
  }
  return memory;
}

std::string MemoryText(const Memory& memory) {
  return absl::StrCat(MemoryPolicyName(memory.policy),
                      memory.nodes.empty() ? "" : "=",
                      support::FormatCpuList(memory.nodes));
}

absl::StatusOr<CommCore> ParseCommCore(absl::string_view text) {
  if (text == "none") return CommCore{.kind = CommCore::Kind::kNone};
  if (text == "auto") return CommCore{};
  CommCore comm_core = {.kind = CommCore::Kind::kNumber};
  if (!absl::SimpleAtoi(text, &comm_core.number) || comm_core.number < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "' is not none, auto or the number of a core, from 0"));
  }
  return comm_core;
}

std::string CommCoreText(const CommCore& comm_core) {
  if (comm_core.kind == CommCore::Kind::kNone) return "none";
  if (comm_core.kind == CommCore::Kind::kAuto) return "auto";
  return absl::StrCat(comm_core.number);
}

absl::StatusOr<std::vector<RankPlan>> PlanHost(const Machine& machine,
                                               int ranks,
                                               const PlanOptions& options) {
  HVDLITE_RETURN_IF_ERROR(CheckMemoryNodes(machine, options.memory));
  const std::vector<Cores> domains = DomainsOf(machine, options.domain);
  const std::vector<Cores> shares = SharesOf(domains, ranks);
  if (shares.front().empty()) {
    if (options.oversubscribe) {
      return OversubscribedPlans(machine, domains, ranks, options);
    }
    return absl::InvalidArgumentError(absl::StrCat(
        ranks, " ranks do not fit on a host with ", machine.cores.size(),
        machine.cores.size() == 1 ? " usable core" : " usable cores",
        " (--map ", DomainName(options.domain),
        "): start fewer, or let them share cores with --oversubscribe"));
  }
  std::vector<RankPlan> plans;
  for (const Cores& share : shares) {
    RankPlan plan;
    HVDLITE_ASSIGN_OR_RETURN(plan.comm_core,
                             CommCoreOf(machine, share, options));
    for (const size_t core : share) {
      if (core != plan.comm_core) plan.compute_cores.push_back(core);
    }
    plan.threads =
        options.threads.value_or(static_cast<int>(plan.compute_cores.size()));
    const size_t cpus = CpusOf(machine, plan.compute_cores);
    if (static_cast<size_t>(plan.threads) > cpus) {
      if (!options.oversubscribe) {
        return absl::InvalidArgumentError(absl::StrCat(
            plan.threads, " threads per rank do not fit on ", cpus,
            cpus == 1 ? " CPU" : " CPUs", " (--map ",
            DomainName(options.domain), ", ", ranks,
            ranks == 1 ? " rank" : " ranks",
            " per host): lower --threads, or share CPUs with --oversubscribe"));
      }
      plan.oversubscribed = true;
    }
    FillIn(machine, options.memory, plan);
    plans.push_back(std::move(plan));
  }
  return plans;
}

std::string OpenMpPlaces(const Machine& machine, const RankPlan& plan) {
  // With one place per CPU, `close` would fill the first cores and leave the
  // last ones idle, unless there is a thread for every CPU.
  const bool by_core =
      static_cast<size_t>(plan.threads) != CpusOf(machine, plan.compute_cores);
  std::vector<std::string> places;
  for (const size_t core : plan.compute_cores) {
    const std::vector<int>& cpus = machine.cores[core].cpus;
    const std::string separator = by_core ? "," : "},{";
    places.push_back(absl::StrCat("{", absl::StrJoin(cpus, separator), "}"));
  }
  return absl::StrJoin(places, ",");
}

std::optional<int> CoordinatorCpu(const Machine& machine,
                                  const RankPlan& plan) {
  if (!plan.comm_core.has_value()) return std::nullopt;
  return machine.cores[*plan.comm_core].cpus.front();
}

const std::vector<Preset>& Presets() {
  static const auto* const presets = new std::vector<Preset>(MakePresets());
  return *presets;
}

const Preset* FindPreset(const std::string& name) {
  for (const Preset& preset : Presets()) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

}  // namespace hvdlite::launch
