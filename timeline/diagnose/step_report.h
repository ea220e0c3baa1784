// Reports about a rank's steps while it runs, without a trace: sums of the
// results of step_analysis.h over each interval.
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
  int64_t interval = 0;  // from 1; starts at about the same time on all ranks
  int64_t first_step = 0;
  int64_t steps = 0;
  int64_t start_ns = 0;
  PartTimes parts = {};  // sums
  int64_t hidden_ns = 0;
  int64_t work = 0;    // sum; -1: unknown for some step
  int64_t cpu_ns = 0;  // the same
  double buckets = 0;  // in all steps
  double bytes = 0;
  ResourceUse use;
  std::vector<TraceArg> facts = {};  // about the rank, such as cpus
};

// A report as a line of JSON without a newline, and back. nullopt: the line is
// not a report.
std::string EncodeStepReport(const StepReport& report);
std::optional<StepReport> DecodeStepReport(absl::string_view line);

// For the process that starts the rank: a pipe, into which the rank writes a
// line per interval. The rank inherits the write end;
// base::kStepReportVariable names its descriptor. Reading and writing never
// block. Errors: ResourceExhausted.
struct StepReportEnds {
  base::Descriptor read;
  base::Descriptor write;
};
absl::StatusOr<StepReportEnds> MakeStepReportPipe();

// For the rank: returns a function that writes into that pipe; null if there is
// no pipe. Lines that do not fit are lost.
std::function<void(const StepReport&)> StepReportPipe(
    const base::Environment& environment);

// The reports of all ranks so far. They are analyzed like a trace; the steps of
// an interval count as one step.
class StepReports {
 public:
  // Returns a line for people if all ranks have reported since the last line:
  // "step 120: 3.20 steps/s, ...".
  std::optional<std::string> Add(StepReport report);

  // A trace with ranks, hosts and facts, and without events.
  Trace Ranks() const;
  StepAnalysis Analysis() const;

 private:
  std::string Line() const;

  std::vector<StepReport> reports_;
  std::map<int64_t, StepReport> latest_;  // since the last line, by rank
};

}  // namespace hvdlite::timeline
