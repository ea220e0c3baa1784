// Hooks that remember.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "collective/fusion/fusion.h"

namespace hvdlite::testing {

// Hooks that keep what they were told.
struct HookRecord {
  std::vector<std::pair<collective::FusionPhase, int64_t>> phases;
  std::vector<double> shares;  // done, at each pause
  int num_pauses = 0;

  collective::FusionHooks Hooks() {
    return {.on_phase = [this](collective::FusionPhase phase, int64_t chunk,
                               int64_t,
                               int64_t) { phases.emplace_back(phase, chunk); },
            .on_progress = [this](double share) { shares.push_back(share); },
            .between_chunks =
                [this] {
                  ++num_pauses;
                  return absl::OkStatus();
                }};
  }
};

}  // namespace hvdlite::testing
