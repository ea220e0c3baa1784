// The flags of every trainer that trains to an end.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace CLI {
class App;
}

namespace hvdlite::trainers {

// What each means is in a trainer's --help.
struct RunFlags {
  int64_t epochs = 1;     // those before --resume included
  int64_t max_steps = 0;  // as epochs; 0: no limit

  std::string checkpoint = {};
  int64_t checkpoint_every = 1;  // epochs
  std::string resume = {};

  std::string report = {};
  std::string report_html = {};
  uint64_t seed = 42;
  int threads = 0;  // 0: LibTorch's default

  bool operator==(const RunFlags&) const = default;
};

void AddRunFlags(CLI::App& app, RunFlags& flags);

// All flags of a trainer as a JSON object: `own` and those of the run.
std::string SettingsText(nlohmann::json own, const RunFlags& run);

}  // namespace hvdlite::trainers
