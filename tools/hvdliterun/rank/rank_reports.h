// Reports from the process beside each rank to hvdliterun about the rank's end.
// They are sent through the launcher's standard error, because all launchers
// have it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hvdlite::launch {

// The end of a rank: a failure, or, with exit code 0, a success.
struct RankFailure {
  int rank = 0;
  std::string host;
  int exit_code = 0;  // or 128 + signal
  // It was told to end: by the launcher because of another rank, or by the
  // user.
  bool was_told = false;
  // If its world ended before: the cause, mostly another rank. Else "".
  std::string reason = {};
  std::vector<std::string> last_lines;
};

// A line that RankReports recognizes, with its line end. It has at most 4000
// bytes, so that it is sent in one piece; some of the last lines may be
// missing.
std::string ReportLine(const RankFailure& failure);

// A line about the steps of a rank (timeline::EncodeStepReport), ready to send.
std::string StepReportLine(absl::string_view report);

// A line about the cores of a host (EncodeCores in core_report.h), ready to
// send.
std::string CoreReportLine(absl::string_view report);

// Separates the reports from the rest of a stream.
class RankReports {
 public:
  // Everything that is not a report goes to `pass_on` immediately. Reports
  // about steps and cores go to `take_steps` and `take_cores`.
  explicit RankReports(std::function<void(absl::string_view)> pass_on,
                       std::function<void(absl::string_view)> take_steps = {},
                       std::function<void(absl::string_view)> take_cores = {});

  void Take(absl::string_view text);
  // Must be called at the end of the stream: passes on an incomplete report.
  void End();

  const std::vector<RankFailure>& failures() const { return failures_; }
  // The number of ranks that reported success.
  int successes() const { return successes_; }
  // The first rank that failed on its own; if there is none, the first one
  // whose world ended; if all were told to end, nullopt.
  std::optional<RankFailure> First() const;

 private:
  std::function<void(absl::string_view)> pass_on_;
  std::function<void(absl::string_view)> take_steps_;
  std::function<void(absl::string_view)> take_cores_;
  std::string begun_;  // text from the mark on
  std::vector<RankFailure> failures_;
  int successes_ = 0;
};

// The last lines of a stream, without noise (IsNoiseLine).
class OutputTail {
 public:
  explicit OutputTail(size_t lines) : capacity_(lines) {}
  void Take(absl::string_view text);
  // The last lines, including an incomplete one at the end.
  std::vector<std::string> lines() const;

 private:
  size_t capacity_;
  std::vector<std::string> lines_;
  std::string unfinished_;
};

}  // namespace hvdlite::launch
