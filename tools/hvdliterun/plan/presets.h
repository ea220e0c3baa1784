// Settings that published studies of training on CPU clusters arrived at.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/hvdliterun/plan/plan.h"

namespace hvdlite::launch {

struct Preset {
  std::string name;
  std::string help;
  Domain domain = Domain::kNode;
  MemoryPolicy memory = MemoryPolicy::kLocal;
  std::optional<CommCore> comm_core;  // none: as without a preset
  // KMP_* too: they are translated for libgomp.
  std::vector<std::pair<std::string, std::string>> variables;
};

// docs/hvdliterun.md says where each is from.
const std::vector<Preset>& Presets();

// Null if there is none of that name.
const Preset* FindPreset(const std::string& name);

}  // namespace hvdlite::launch
