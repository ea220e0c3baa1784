// Reports three steps on rank 0, with a fake clock that advances one second
// per step.
#include <cstdio>

#include "base/environment.h"
#include "base/launcher_environment.h"
#include "support/progress_line.h"

int main() {
  using namespace hvdlite;  // NOLINT: this program is part of hvdlite
  double now = 0;
  const bool shows =
      base::RankOfLauncher(base::ProcessEnvironment()).value_or(0) == 0;
  support::ProgressLine line({.item = "step",
                              .items = "steps",
                              .style = shows ? support::StyleOfOutput()
                                             : support::ProgressStyle::kNone,
                              .tells_first = true,
                              .seconds = [&now] { return now; }});
  for (int step = 1; step <= 3; ++step) {
    now += 1;
    line.Show(step, 3);
  }
  line.Clear();
  if (shows) std::puts("done");
}
