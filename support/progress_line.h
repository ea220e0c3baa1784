// Shows the progress of long work, and the estimated time left.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>

#include "support/machine.h"

namespace hvdlite::support {

// How progress is shown.
enum class ProgressStyle {
  kNone,
  kTerminal,  // one line, overwritten a few times a second
  kLog        // permanent lines at growing intervals
};

// kTerminal if standard output is shown on a terminal (terminal.h), otherwise
// kLog.
ProgressStyle StyleOfOutput();

// Prefix for lines of other ranks while one rank shows progress. On a terminal
// it erases the progress line.
std::string LineStart();

// A progress line such as "step 120/1000, 12%, loss 1.2346, 3.1 steps/s, ETA
// 1:23". On a terminal it is erased before other output. In a log a new line
// appears after a tenth of the time so far, but at least 10 s; short work shows
// none.
class ProgressLine {
 public:
  struct Options {
    std::string item;   // what is counted, such as "step"
    std::string items;  // its plural
    ProgressStyle style = StyleOfOutput();
    int64_t first = 0;         // already done at the start
    bool tells_first = false;  // in a log, also after the first item
    std::FILE* out = stdout;
    std::function<double()> seconds = WallSeconds;
  };
  explicit ProgressLine(Options options);
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Shows that `done` of `all` items are done, with the current loss.
  void Show(int64_t done, int64_t all, std::optional<double> loss = {});
  void Clear();

  // The rate excludes the time from Pause() to Resume(), and `seconds`, since
  // other work is done then. The estimate of the time left includes both, since
  // they will occur again.
  void Pause() { paused_at_ = options_.seconds(); }
  void Resume();
  void LeaveOut(double seconds) { left_out_seconds_ += seconds; }

 private:
  bool IsDue(int64_t done, double now) const;

  const Options options_;
  const double start_seconds_;
  double shown_seconds_;  // when the line was written last
  std::optional<double> paused_at_;
  double left_out_seconds_ = 0;
  bool visible_ = false;
};

// "59 s", "1:23" or "2:03:04".
std::string FormatDuration(double seconds);

}  // namespace hvdlite::support
