// How far a training is, as a line that rewrites itself.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

#include "tools/support/machine.h"

namespace hvdlite::trainers {

// Whether standard output is a terminal that shows the lines of this process
// alone. Under a launcher it is not: Open MPI gives ranks a terminal of its own
// even where their output goes to a file.
bool ShowsProgress();

// "step 120/1000, 12%, loss 1.2346, ETA 1:23". A line that is written over
// again and again, a few times a second at most, and cleared before anything
// else is printed.
class ProgressLine {
 public:
  struct Options {
    std::FILE* out = stdout;
    bool shown = ShowsProgress();  // otherwise nothing is written
    int64_t first_step = 0;        // done before this run
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
  const Options options_;
  const double start_seconds_;
  double shown_seconds_;  // when the line was written last
  bool visible_ = false;
};

// "59", "1:23" or "2:03:04": minutes and hours where there are some.
std::string FormatDuration(double seconds);

}  // namespace hvdlite::trainers
