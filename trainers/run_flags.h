// The flags that trainers share.
#pragma once

#include <cstdint>
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
  int64_t checkpoint_every = 1;         // epochs
  int64_t checkpoint_every_steps = 0;   // 0: never
  double checkpoint_every_minutes = 0;  // 0: never
  // -1: 1 where the launcher keeps commits, else 0, which is never.
  int64_t commit_every_steps = -1;
  std::string resume = {};

  std::string report = {};
  std::string report_html = {};
  uint64_t seed = 42;
  int threads = 0;  // 0: LibTorch's default

  bool operator==(const RunFlags&) const = default;
};

// Those of a trainer that trains to an end.
void AddRunFlags(CLI::App& app, RunFlags& flags);

// --seed and --threads, those of every trainer.
void AddProcessFlags(CLI::App& app, uint64_t& seed, int& threads);

// All flags of a trainer as a JSON object: its `own`, likewise, and those of
// the run.
std::string SettingsText(const std::string& own, const RunFlags& run);

}  // namespace hvdlite::trainers
