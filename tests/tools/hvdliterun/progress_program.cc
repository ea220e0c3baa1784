// Tells of three steps, a second apart as far as it knows, on rank 0.
#include <cstdio>

#include "base/environment.h"
#include "base/launcher_environment.h"
#include "support/progress_line.h"

int main() {
  using namespace hvdlite;  // NOLINT: this program is a part of it
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
