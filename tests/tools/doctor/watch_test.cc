#include "tools/doctor/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/fakes/machine_files.h"

namespace hvdlite::doctor {
namespace {

using ::testing::HasSubstr;

int64_t Ticks(int64_t seconds) { return seconds * sysconf(_SC_CLK_TCK); }

// /proc/PID/stat of a trainer that ran for `seconds`, last on CPU 0.
std::string Stat(int64_t seconds) {
  return absl::StrCat("71 (trainer) R 1 1 1 0 -1 0 0 0 0 0 ", Ticks(seconds),
                      " 0 0 0 20 0 1 0 5 1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 17 0 0 "
                      "0 0 0 0");
}

TEST(WatchTest, ShowsLoadAndProcessesOfEachCore) {
  testing::MachineFiles tree;
  const auto at = [&](int64_t second) {
    // The trainer computes on CPU 0 for nine tenths of the time; CPU 1 is idle.
    const int64_t tenth = Ticks(second) / 10;
    tree.Write("/proc/stat",
               absl::StrCat("cpu0 ", 9 * tenth, " 0 0 ", tenth,
                            " 0 0 0 0\ncpu1 0 0 0 ", 10 * tenth,
                            " 0 0 0 0\ncpu2 0 0 0 ", 10 * tenth, " 0 0 0 0"));
    tree.Write("/proc/71/stat", Stat(second));
    tree.Write("/proc/71/task/71/stat", Stat(second));
  };
  tree.Write("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
             "0,2");
  tree.Write("/sys/devices/system/cpu/cpu2/topology/thread_siblings_list",
             "0,2");
  base::FakeClock clock;
  int64_t second = 100;
  at(second);
  std::vector<absl::Duration> pauses;
  const std::string text = WatchCores(tree.files(), absl::Milliseconds(2500),
                                      clock, [&](absl::Duration pause) {
                                        pauses.push_back(pause);
                                        clock.Advance(pause);
                                        at(++second);
                                      });
  EXPECT_EQ(pauses,
            (std::vector<absl::Duration>{absl::Seconds(1), absl::Seconds(1),
                                         absl::Milliseconds(500)}));
  EXPECT_EQ(text,
            "cores in 2.5 s (# busy, w waiting for a disk, s taken by the "
            "hypervisor, . idle):\n"
            "  CPU 0,2 ####################################....  90 %  trainer "
            "(pid 71) 100 %\n"
            "  CPU 1   ........................................   0 %  \n");
}

TEST(WatchTest, LoadOfInvisibleProcessesIsReported) {
  testing::MachineFiles tree;
  const auto at = [&](int64_t second) {
    const int64_t tenth = Ticks(second) / 10;
    tree.Write("/proc/stat", absl::StrCat("cpu0 ", 5 * tenth, " 0 0 ",
                                          5 * tenth, " 0 0 0 0\ncpu1 ", tenth,
                                          " 0 0 ", 9 * tenth, " 0 0 0 0"));
  };
  base::FakeClock clock;
  int64_t second = 100;
  at(second);
  const std::string text = WatchCores(tree.files(), absl::Seconds(1), clock,
                                      [&](absl::Duration pause) {
                                        clock.Advance(pause);
                                        at(++second);
                                      });
  EXPECT_THAT(text, HasSubstr(" 50 %  no visible process: short processes or "
                              "another container\n"));
  EXPECT_THAT(text, HasSubstr(" 10 %  \n"));
}

}  // namespace
}  // namespace hvdlite::doctor
