// Plan: for each rank of a host the cores on which it computes, the core of its
// coordinator, and the NUMA nodes of its memory.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/hvdliterun/plan/machine.h"

namespace hvdlite::launch {

// The part of a machine of which each rank gets a share.
enum class Domain { kNode, kSocket, kNuma, kCore };

absl::string_view DomainName(Domain domain);
absl::StatusOr<Domain> ParseDomain(absl::string_view text);

enum class MemoryPolicy {
  kLocal,       // the node of the CPU that touches a page first
  kInterleave,  // page by page over all NUMA nodes with usable CPUs
  kBind,        // only the nodes of the rank's cores
  kPreferred,   // the first node of the rank's cores; others when it is full
  kInherit,     // the policy of the launcher
};

absl::string_view MemoryPolicyName(MemoryPolicy policy);

// The NUMA nodes from which a rank gets its memory.
struct Memory {
  MemoryPolicy policy = MemoryPolicy::kLocal;
  std::vector<int> nodes = {};  // in place of the policy's own nodes

  bool operator==(const Memory&) const = default;
};

// Parses "local", "interleave", "bind=0,2-3", "preferred=1".
absl::StatusOr<Memory> ParseMemory(absl::string_view text);
inline constexpr char kMemoryWords[] =
    "local, interleave, bind, preferred, interleave=0,1, bind=0, preferred=1";
std::string MemoryText(const Memory& memory);

// A placement of ranks in the notation of Open MPI's --map-by.
// "ppr:1:numa:pe=12" means one rank per NUMA node with 12 cores.
struct Placement {
  int ranks_per_domain = 1;
  Domain domain = Domain::kNode;
  std::optional<int> cores_per_rank;

  bool operator==(const Placement&) const = default;
};
absl::StatusOr<Placement> ParsePlacement(absl::string_view text);

// The number of ranks that a host has room for: ranks_per_domain for each of
// its domains.
int RanksOf(const Placement& placement, const Machine& machine);

// The core of the background thread, which runs the coordinator.
struct CommCore {
  enum class Kind {
    kNone,    // none of its own: it shares the computing cores
    kAuto,    // its own core, if this costs little
    kNumber,  // the rank's core of this number
  };
  Kind kind = Kind::kAuto;
  int number = 0;  // from 0, among the cores of the rank

  bool operator==(const CommCore&) const = default;
};

// "none", "auto" or a number.
absl::StatusOr<CommCore> ParseCommCore(absl::string_view text);
std::string CommCoreText(const CommCore& comm_core);

// With `auto`, a rank with at least this many cores gives one of them to the
// coordinator: at most an eighth of the computing power.
inline constexpr int kCoresForACommCore = 8;

struct PlanOptions {
  Domain domain = Domain::kNode;
  std::optional<int> threads = {};  // nullopt: one per computing core
  CommCore comm_core = {};
  Memory memory = {};
  bool oversubscribe = false;
};

struct RankPlan {
  std::vector<size_t> compute_cores;  // indices of Machine::cores, in order
  std::optional<size_t> comm_core;    // index of Machine::cores
  int threads = 1;
  std::vector<int> cpus = {};  // of all these cores; the process may use them
  std::vector<int> memory_nodes = {};  // of its memory policy; may be empty
  // It shares its cores with other ranks, or has more threads than CPUs: no
  // thread is pinned to a single core.
  bool oversubscribed = false;
};

// Distributes a host's cores to its `ranks`. If there are at least as many
// domains as ranks, rank r gets domain r. Else the ranks are distributed over
// the domains in order, and each domain's cores over its ranks; all ranks of
// the host get the same number of cores. Errors: a rank without a core or more
// threads than CPUs (unless `oversubscribe`), a coordinator's core that the
// rank does not have, memory nodes that the host does not have.
absl::StatusOr<std::vector<RankPlan>> PlanHost(const Machine& machine,
                                               int ranks,
                                               const PlanOptions& options);

// "{0,18},{1,19}": one place per computing core, or one place per CPU if there
// is a thread for each CPU.
std::string OpenMpPlaces(const Machine& machine, const RankPlan& plan);

// The CPU for HVDLITE_COORDINATOR_CORE; nullopt if the coordinator has no core.
std::optional<int> CoordinatorCpu(const Machine& machine, const RankPlan& plan);

// Settings from published studies of training on CPU clusters.
struct Preset {
  std::string name;
  std::string help;
  Domain domain = Domain::kNode;
  Memory memory = {};
  std::optional<CommCore> comm_core = {};  // nullopt: as without a preset
  // May contain KMP_*, which are translated for libgomp.
  std::vector<std::pair<std::string, std::string>> variables;
};

// docs/launching.md names the study of each preset.
const std::vector<Preset>& Presets();

// Null if there is no preset with this name.
const Preset* FindPreset(const std::string& name);

}  // namespace hvdlite::launch
