// How far a training is, and how long it will take.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

#include "tools/support/machine.h"

namespace hvdlite::trainers {

// Where the progress of a training is told.
enum class ProgressStyle {
  kNone,
  kTerminal,  // a line that is written over again, a few times a second
  kLog        // lines that stay: the first step's, and others ever more seldom
};

// kTerminal where standard output is a terminal that shows the lines of this
// process alone. Under a launcher it is not: Open MPI gives ranks a terminal of
// its own even where their output goes to a file.
ProgressStyle StyleOfOutput();

// "step 120/1000, 12%, loss 1.2346, 3.1 steps/s, ETA 1:23", cleared from a
// terminal before anything else is printed. In a log it comes after the first
// step, and then when as many seconds have passed as a tenth of the run so far,
// 10 at least.
class ProgressLine {
 public:
  struct Options {
    std::FILE* out = stdout;
    ProgressStyle style = StyleOfOutput();
    int64_t first_step = 0;  // done before this run
    int64_t last_step = 0;
    std::function<double()> seconds = support::WallSeconds;
  };
  explicit ProgressLine(Options options);
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // So many steps are done.
  void Show(int64_t step, double loss);
  void Clear();

 private:
  bool IsDue(int64_t step, double now) const;

  const Options options_;
  const double start_seconds_;
  double shown_seconds_;  // when the line was written last
  bool visible_ = false;
};

// "59", "1:23" or "2:03:04": minutes and hours where there are some.
std::string FormatDuration(double seconds);

}  // namespace hvdlite::trainers
