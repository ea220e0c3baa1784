// What the process beside each rank tells hvdliterun about the rank's end,
// through the launcher's standard error: the one way that all launchers have.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hvdlite::launch {

// A rank that failed; or, with exit code 0, one that did not.
struct RankFailure {
  int rank = 0;
  std::string host;
  int exit_code = 0;  // or 128 + signal
  // It was told to end (by the launcher, for another rank's sake, or by the
  // user).
  bool was_told = false;
  // Its world had ended before, which names the cause: mostly another rank; "".
  std::string reason = {};
  std::vector<std::string> last_lines;
};

// A line that RankReports recognises, with its end of line. At most 4000 bytes,
// which travel in one piece: the first of the last lines may be missing.
std::string ReportLine(const RankFailure& failure);

// A line about the steps of a rank (timeline::EncodeStepReport), as it travels.
std::string StepReportLine(absl::string_view report);

// One about the cores of its host (EncodeCores in core_report.h), likewise.
std::string CoreReportLine(absl::string_view report);

// Takes the reports out of a stream.
class RankReports {
 public:
  // Everything that is no report goes to `pass_on`, at once; reports about
  // steps and cores go to `take_steps` and `take_cores`.
  explicit RankReports(std::function<void(absl::string_view)> pass_on,
                       std::function<void(absl::string_view)> take_steps = {},
                       std::function<void(absl::string_view)> take_cores = {});

  void Take(absl::string_view text);
  // At the end of the stream: passes on what has only begun like a report.
  void End();

  const std::vector<RankFailure>& failures() const { return failures_; }
  // Ranks that have told of their success.
  int successes() const { return successes_; }
  // The first that failed on its own; without one the first whose world ended;
  // if all were told to end, none.
  std::optional<RankFailure> First() const;

 private:
  std::function<void(absl::string_view)> pass_on_;
  std::function<void(absl::string_view)> take_steps_;
  std::function<void(absl::string_view)> take_cores_;
  std::string begun_;  // from the mark on
  std::vector<RankFailure> failures_;
  int successes_ = 0;
};

// The last lines of a stream, without those that are noise (IsNoiseLine).
class OutputTail {
 public:
  explicit OutputTail(size_t lines) : capacity_(lines) {}
  void Take(absl::string_view text);
  // Whole lines, and what follows the last of them.
  std::vector<std::string> lines() const;

 private:
  size_t capacity_;
  std::vector<std::string> lines_;
  std::string unfinished_;
};

}  // namespace hvdlite::launch
