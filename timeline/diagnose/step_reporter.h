// A recorder that tells of the steps of its rank while they run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "timeline/diagnose/step_report.h"
#include "timeline/record/trace_event.h"
#include "timeline/record/trace_recorder.h"

namespace hvdlite::timeline {

// Keeps events until their step is over, and tells sums.
class StepReporter : public TraceRecorder {
 public:
  struct Options {
    int rank = 0;
    int size = 1;
    std::string host;
    std::vector<TraceArg> facts = {};
    absl::Duration interval = absl::Seconds(5);
    // As TraceRecorder::Options::sample.
    std::function<std::vector<TraceEvent>()> sample = {};
    // Called by the reporter's thread, at the end of an interval in which steps
    // ended; the last time by Close().
    std::function<void(const StepReport&)> tell;
  };

  static std::unique_ptr<StepReporter> Start(Options options,
                                             const base::Clock& clock);

  // All events go to `recorder`, too; null: no longer.
  virtual void PassOnTo(std::shared_ptr<TraceRecorder> recorder) = 0;
};

}  // namespace hvdlite::timeline
