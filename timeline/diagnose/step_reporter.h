// A recorder that reports about the steps of its rank while they run.
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

// Keeps events until their step has ended, and reports sums.
class StepReporter : public TraceRecorder {
 public:
  struct Options {
    int rank = 0;
    int size = 1;
    std::string host;
    std::vector<TraceArg> facts = {};
    absl::Duration interval = absl::Seconds(5);
    // Like TraceRecorder::Options::sample.
    std::function<std::vector<TraceEvent>()> sample = {};
    // Called by the reporter's thread at the end of each interval in which
    // steps ended; for the last time during Close().
    std::function<void(const StepReport&)> tell;
  };

  static std::unique_ptr<StepReporter> Start(Options options,
                                             const base::Clock& clock);

  // Forwards all events to `recorder`, too; null: stops that.
  virtual void PassOnTo(std::shared_ptr<TraceRecorder> recorder) = 0;
};

}  // namespace hvdlite::timeline
