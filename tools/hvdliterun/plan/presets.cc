#include "tools/hvdliterun/plan/presets.h"

namespace hvdlite::launch {
namespace {

// Of Fujitsu's large-page library. Pages come at the first touch, so that they
// lie on the NUMA node of the thread that works with them; freed memory is
// kept; threads do not share one arena's lock.
std::vector<std::pair<std::string, std::string>> A64fxVariables() {
  return {{"XOS_MMM_L_HPAGE_TYPE", "hugetlbfs"},
          {"XOS_MMM_L_PAGING_POLICY", "demand:demand:demand"},
          {"XOS_MMM_L_ARENA_FREE", "2"},
          {"XOS_MMM_L_ARENA_LOCK_TYPE", "0"}};
}

std::vector<Preset> MakePresets() {
  // A core of its own for the coordinator would be a twelfth of the rank.
  const CommCore none = {.kind = CommCore::Kind::kNone};
  return {
      {.name = "a64fx-numa",
       .help = "a rank for each of the four NUMA nodes of an A64FX",
       .domain = Domain::kNuma,
       .memory = MemoryPolicy::kLocal,
       .comm_core = none,
       .variables = A64fxVariables()},
      {.name = "a64fx-node",
       .help = "one rank on all 48 cores of an A64FX",
       .domain = Domain::kNode,
       .memory = MemoryPolicy::kLocal,
       .comm_core = std::nullopt,
       .variables = A64fxVariables()},
      {.name = "xeon-socket",
       .help = "a rank for each socket, its threads bound core by core",
       .domain = Domain::kSocket,
       .memory = MemoryPolicy::kLocal,
       .comm_core = std::nullopt,
       .variables = {{"KMP_AFFINITY", "granularity=fine,compact,1,0"},
                     {"KMP_BLOCKTIME", "1"}}},
      {.name = "interleave",
       .help = "one rank on all sockets, memory page by page from all of them",
       .domain = Domain::kNode,
       .memory = MemoryPolicy::kInterleave,
       .comm_core = std::nullopt,
       .variables = {{"KMP_AFFINITY", "granularity=fine,compact,1,0"},
                     {"KMP_BLOCKTIME", "1"}}},
  };
}

}  // namespace

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
