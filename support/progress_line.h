// How far something is that takes its time, and how long it will take.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>

#include "support/machine.h"

namespace hvdlite::support {

// Where progress is told.
enum class ProgressStyle {
  kNone,
  kTerminal,  // a line that is written over again, a few times a second
  kLog        // lines that stay, ever more seldom
};

// kTerminal where standard output is seen on a terminal (terminal.h), else
// kLog.
ProgressStyle StyleOfOutput();

// What a rank begins its own lines with whose progress another one shows: on a
// terminal it erases that.
std::string LineStart();

// "step 120/1000, 12%, loss 1.2346, 3.1 steps/s, ETA 1:23", cleared from a
// terminal before anything else is printed. In a log it comes when as many
// seconds have passed as a tenth of the time so far, 10 at least; so it does
// not of what is done by then.
class ProgressLine {
 public:
  struct Options {
    std::string item;   // of which so many are done, "step"
    std::string items;  // their plural
    ProgressStyle style = StyleOfOutput();
    int64_t first = 0;         // done before
    bool tells_first = false;  // in a log, of the first item, too
    std::FILE* out = stdout;
    std::function<double()> seconds = WallSeconds;
  };
  explicit ProgressLine(Options options);
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // `done` of `all` items are done, and training has come to such a loss.
  void Show(int64_t done, int64_t all, std::optional<double> loss = {});
  void Clear();

  // Time from Pause() to Resume() does not count in the rate, nor do these
  // seconds: what is done then is something else. The estimate of the time left
  // has them, since they will come again.
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

// "59 s", "1:23" or "2:03:04": minutes and hours where there are some.
std::string FormatDuration(double seconds);

}  // namespace hvdlite::support
