// A recorder that keeps its events in memory.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "timeline/record/trace_recorder.h"

namespace hvdlite::timeline {

class KeptEvents final : public timeline::TraceRecorder {
 public:
  void Record(TraceEvent event) override { events.push_back(std::move(event)); }
  void StepOver(int64_t, const StepCost&) override {}
  absl::Status Close() override { return absl::OkStatus(); }
  int64_t dropped_events() const override { return 0; }

  std::vector<std::string> Names(int track) const {
    std::vector<std::string> names;
    for (const TraceEvent& event : events) {
      if (event.track == track) names.push_back(event.name);
    }
    return names;
  }
  std::vector<TraceEvent> events;
};

}  // namespace hvdlite::timeline
