// Plan: which cores of a host each of its ranks computes on, which one its
// coordinator has, and where its memory comes from.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/hvdliterun/plan/machine.h"

namespace hvdlite::launch {

// What ranks get a share of.
enum class Domain { kNode, kSocket, kNuma, kCore };

absl::string_view DomainName(Domain domain);
absl::StatusOr<Domain> ParseDomain(absl::string_view text);

enum class MemoryPolicy {
  kLocal,       // the node of the CPU that touches it first
  kInterleave,  // page by page over NUMA nodes: all with usable CPUs
  kBind,        // those nodes and no others: of the rank's cores
  kPreferred,   // one node, others when it is full: the first that kBind has
  kInherit,     // as the launcher has it
};

absl::string_view MemoryPolicyName(MemoryPolicy policy);

// Where the memory of a rank comes from.
struct Memory {
  MemoryPolicy policy = MemoryPolicy::kLocal;
  std::vector<int> nodes = {};  // instead of those that the policy says

  bool operator==(const Memory&) const = default;
};

// "local", "interleave", "bind=0,2-3", "preferred=1".
absl::StatusOr<Memory> ParseMemory(absl::string_view text);
inline constexpr char kMemoryWords[] =
    "local, interleave, bind, preferred, interleave=0,1, bind=0, preferred=1";
std::string MemoryText(const Memory& memory);

// Where ranks go as Open MPI's --map-by spells it: "ppr:1:numa:pe=12" are one
// rank for each NUMA node, with 12 cores.
struct Placement {
  int ranks_per_domain = 1;
  Domain domain = Domain::kNode;
  std::optional<int> cores_per_rank;

  bool operator==(const Placement&) const = default;
};
absl::StatusOr<Placement> ParsePlacement(absl::string_view text);

// So many ranks a host has room for: of each of its domains ranks_per_domain.
int RanksOf(const Placement& placement, const Machine& machine);

// The core of the coordinator's thread.
struct CommCore {
  enum class Kind {
    kNone,    // it shares the computing cores
    kAuto,    // one of its own where that costs little
    kNumber,  // the rank's core of this number
  };
  Kind kind = Kind::kAuto;
  int number = 0;  // from 0, among the cores of the rank

  bool operator==(const CommCore&) const = default;
};

// "none", "auto" or a number.
absl::StatusOr<CommCore> ParseCommCore(absl::string_view text);
std::string CommCoreText(const CommCore& comm_core);

// From how many cores a rank has on, `auto` takes one of them for the
// coordinator: an eighth of the computing power at most.
inline constexpr int kCoresForACommCore = 8;

struct PlanOptions {
  Domain domain = Domain::kNode;
  std::optional<int> threads =
      {};  // none: the cores that are left for computing
  CommCore comm_core = {};
  Memory memory = {};
  bool oversubscribe = false;
};

struct RankPlan {
  std::vector<size_t> compute_cores;  // indices of Machine::cores, in order
  std::optional<size_t> comm_core;    // likewise
  int threads = 1;
  std::vector<int> cpus = {};  // that the process may use: of all these cores
  std::vector<int> memory_nodes = {};  // that its memory policy has, or none
  // Shares its cores with other ranks, or has more threads than CPUs: nothing
  // is pinned to a single core.
  bool oversubscribed = false;
};

// Deals a host's cores to its `ranks`. With as many domains as ranks or more,
// rank r gets domain r; with fewer, the ranks are dealt over the domains in
// order, and each domain's cores to its ranks, equally many to all ranks of the
// host. Errors: a rank without a core or more threads than CPUs (unless
// `oversubscribe`), a coordinator's core that the rank does not have, memory of
// nodes that the host does not have.
absl::StatusOr<std::vector<RankPlan>> PlanHost(const Machine& machine,
                                               int ranks,
                                               const PlanOptions& options);

// "{0,18},{1,19}": a place for each compute core; a place for each CPU where
// there is a thread for each.
std::string OpenMpPlaces(const Machine& machine, const RankPlan& plan);

// The CPU that HVDLITE_COORDINATOR_CORE names; none where there is no core.
std::optional<int> CoordinatorCpu(const Machine& machine, const RankPlan& plan);

// Settings that published studies of training on CPU clusters arrived at.
struct Preset {
  std::string name;
  std::string help;
  Domain domain = Domain::kNode;
  Memory memory = {};
  std::optional<CommCore> comm_core = {};  // none: as without a preset
  // KMP_* too: they are translated for libgomp.
  std::vector<std::pair<std::string, std::string>> variables;
};

// docs/launching.md says where each is from.
const std::vector<Preset>& Presets();

// Null if there is none of that name.
const Preset* FindPreset(const std::string& name);

}  // namespace hvdlite::launch
