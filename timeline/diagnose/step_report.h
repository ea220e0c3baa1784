// What a rank tells of its steps while it runs, without a trace: sums of what
// step_analysis.h finds in each interval.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/descriptor.h"
#include "base/environment.h"
#include "timeline/diagnose/step_analysis.h"
#include "timeline/record/trace_event.h"

namespace hvdlite::timeline {

// The steps of a rank that ended in one interval.
struct StepReport {
  int64_t rank = 0;
  int64_t size = 1;
  std::string host;
  int64_t interval = 0;  // from 1, at about the same time on all ranks
  int64_t first_step = 0;
  int64_t steps = 0;
  int64_t start_ns = 0;
  PartTimes parts = {};  // sums
  int64_t hidden_ns = 0;
  int64_t work = 0;    // sum; -1: not known of some step
  int64_t cpu_ns = 0;  // the same
  double batches = 0;  // of all steps
  double bytes = 0;
  ResourceUse use;
  std::vector<TraceArg> facts = {};  // of the rank, such as cpus
};

// A line of JSON without its end; and what it told. nullopt: it is none.
std::string EncodeStepReport(const StepReport& report);
std::optional<StepReport> DecodeStepReport(absl::string_view line);

// For who runs the rank: a pipe, named to the rank's process by
// base::kStepReportVariable, into which the rank, which inherits its end for
// writing, puts a line per interval; reading and writing never block. Errors:
// ResourceExhausted.
struct StepReportEnds {
  base::Descriptor read;
  base::Descriptor write;
};
absl::StatusOr<StepReportEnds> MakeStepReportPipe();

// For the rank: writes into that pipe; empty where there is none. What does not
// fit is lost.
std::function<void(const StepReport&)> StepReportPipe(
    const base::Environment& environment);

// What all ranks have told so far, to be judged as a trace is: an interval's
// steps stand as one.
class StepReports {
 public:
  // A line for people, when all ranks have told since the last: "step 120:
  // 3.2 steps/s, ...".
  std::optional<std::string> Add(StepReport report);

  // Ranks, hosts, and facts; no events.
  Trace Ranks() const;
  StepAnalysis Analysis() const;

 private:
  std::string Line() const;

  std::vector<StepReport> reports_;
  std::map<int64_t, StepReport> latest_;  // since the last line, by rank
};

}  // namespace hvdlite::timeline
