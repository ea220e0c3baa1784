#include "support/core_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tests/testing/fakes/machine_files.h"

namespace hvdlite::support {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kSecondNs = 1'000'000'000;

int64_t Ticks(double seconds) {
  return static_cast<int64_t>(seconds *
                              static_cast<double>(sysconf(_SC_CLK_TCK)));
}

// A line of /proc/PID/stat, also for a thread. 30 of the ticks are in kernel
// mode.
std::string Stat(const std::string& name, int64_t ticks, int cpu,
                 int threads = 1) {
  return absl::StrCat(
      "12 (", name, ") R 1 7 1 0 -1 0 0 0 0 0 ", ticks - 30, " 30 0 0 20 0 ",
      threads, " 0 5 1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 17 ", cpu, " 0 0 0 0 0");
}

class CoreUseTest : public ::testing::Test {
 protected:
  // Seconds since the start, for CPUs 0, 1, ...
  void SetCpus(const std::vector<CpuTimes>& cpus) {
    std::vector<std::string> lines = {"cpu  1 1 1 1 1 1 1 1 0 0"};
    for (size_t i = 0; i < cpus.size(); ++i) {
      // Half of the busy time is in kernel mode.
      const int64_t half = Ticks(cpus[i].busy / 2);
      lines.push_back(absl::StrCat(
          "cpu", i, " ", half, " 0 ", half, " ", Ticks(cpus[i].idle), " ",
          Ticks(cpus[i].iowait), " 0 0 ", Ticks(cpus[i].stolen), " 0 0"));
    }
    tree_.Write("/proc/stat", absl::StrJoin(lines, "\n") + "\nintr 1 2 3");
  }

  // A process with one thread for each of `threads`: seconds and CPU.
  void SetProcess(int id, const std::string& name,
                  const std::vector<std::pair<double, int>>& threads) {
    double sum = 0;
    for (size_t i = 0; i < threads.size(); ++i) {
      const auto& [seconds, cpu] = threads[i];
      sum += seconds;
      tree_.Write(absl::StrCat("/proc/", id, "/task/", id + i, "/stat"),
                  Stat(name, Ticks(seconds), cpu));
    }
    tree_.Write(absl::StrCat("/proc/", id, "/stat"),
                Stat(name, Ticks(sum), 0, static_cast<int>(threads.size())));
  }

  hvdlite::testing::MachineFiles tree_;
};

TEST_F(CoreUseTest, TimesOfEveryCpuAreRead) {
  tree_.Write(
      "/proc/stat",
      "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 100 200 300 400 500 600 700 300 "
      "7 7\ncpu10 1 2 3 x 5 6 7 800 0 0\ncpu11 1 2 3\ncpufreq 1 1 1 1 1 "
      "1 1 1 1");
  const std::map<int, CpuTimes> cpus = ReadCpuTimes(tree_.files());
  ASSERT_THAT(cpus, SizeIs(1));
  const double second = static_cast<double>(Ticks(1));
  EXPECT_DOUBLE_EQ(cpus.at(0).busy, 1900 / second);
  EXPECT_DOUBLE_EQ(cpus.at(0).idle, 400 / second);
  EXPECT_DOUBLE_EQ(cpus.at(0).iowait, 500 / second);
  EXPECT_DOUBLE_EQ(cpus.at(0).stolen, 300 / second);
}

TEST_F(CoreUseTest, SharesAreRelativeToTheTimeBetweenSamples) {
  CoreWatch watch(tree_.files());
  SetCpus({{.busy = 100, .idle = 50}, {.busy = 7, .iowait = 1, .idle = 3}});
  const CoreLook first = watch.Look(0);
  SetCpus({{.busy = 110, .idle = 50},
           {.busy = 9, .iowait = 4, .stolen = 1, .idle = 7}});
  const CoreLook last = watch.Look(10 * kSecondNs);
  EXPECT_THAT(
      UseBetween(watch, first, last, {{0}, {1}, {2}}),
      ElementsAre(
          CoreUse{.cpus = {0}, .busy = 1},
          CoreUse{.cpus = {1}, .busy = 0.2, .iowait = 0.3, .stolen = 0.1},
          CoreUse{.cpus = {2}}));
  // No time has passed.
  EXPECT_THAT(UseBetween(watch, last, last, {{0}}),
              ElementsAre(CoreUse{.cpus = {0}}));
}

TEST_F(CoreUseTest, CoreIsAsBusyAsItsBusiestHardwareThread) {
  CoreWatch watch(tree_.files());
  SetCpus({{}, {}, {}, {}});
  const CoreLook first = watch.Look(0);
  SetCpus(
      {{.busy = 2, .idle = 8}, {}, {.busy = 6, .iowait = 1, .idle = 3}, {}});
  const CoreLook last = watch.Look(10 * kSecondNs);
  EXPECT_THAT(UseBetween(watch, first, last, {{0, 2}}),
              ElementsAre(CoreUse{.cpus = {0, 2}, .busy = 0.6, .iowait = 0.1}));
}

TEST_F(CoreUseTest, ThreadTimeBetweenSamplesCountsForTheLastCpu) {
  CoreWatch watch(tree_.files());
  SetCpus({{}, {}});
  SetProcess(100, "trainer", {{1000, 0}, {1000, 1}});
  SetProcess(200, "sleeper", {{500, 0}});
  const CoreLook first = watch.Look(0);
  SetProcess(100, "trainer", {{1009, 0}, {1003, 1}});
  SetProcess(300, "thief", {{6, 1}});
  SetProcess(400, "idler", {{0.4, 1}});
  const CoreLook last = watch.Look(10 * kSecondNs);
  const std::vector<CoreUse> uses = UseBetween(watch, first, last, {{0}, {1}});
  EXPECT_THAT(
      uses[0].processes,
      ElementsAre(ProcessUse{.name = "trainer", .id = 100, .share = 0.9}));
  EXPECT_THAT(
      uses[1].processes,
      ElementsAre(ProcessUse{.name = "thief", .id = 300, .share = 0.6},
                  ProcessUse{.name = "trainer", .id = 100, .share = 0.3}));
  EXPECT_EQ(ProcessText(uses[1].processes[0]), "thief (pid 300) 60 %");
}

TEST_F(CoreUseTest, TimeBeforeTheFirstSampleIsNotCounted) {
  CoreWatch watch(tree_.files());
  SetCpus({{}});
  SetProcess(100, "trainer", {{0.3, 0}});
  watch.Look(0);
  SetProcess(100, "trainer", {{5.3, 0}});
  const CoreLook first = watch.Look(5 * kSecondNs);
  SetProcess(100, "trainer", {{6.3, 0}});
  const CoreLook last = watch.Look(10 * kSecondNs);
  EXPECT_THAT(
      UseBetween(watch, first, last, {{0}})[0].processes,
      ElementsAre(ProcessUse{.name = "trainer", .id = 100, .share = 0.2}));
}

TEST_F(CoreUseTest, EndedProcessIsKeptUnlessItsTimeIsShort) {
  CoreWatch watch(tree_.files());
  SetCpus({{}});
  const CoreLook first = watch.Look(0);
  SetProcess(100, "trainer", {{4, 0}});
  SetProcess(200, "short", {{0.9, 0}});
  EXPECT_THAT(watch.Look(5 * kSecondNs).seconds, SizeIs(2));
  std::filesystem::remove_all(tree_.root() + "/proc/100");
  std::filesystem::remove_all(tree_.root() + "/proc/200");
  const CoreLook last = watch.Look(10 * kSecondNs);
  EXPECT_THAT(
      UseBetween(watch, first, last, {{0}})[0].processes,
      ElementsAre(ProcessUse{.name = "trainer", .id = 100, .share = 0.4}));
}

TEST_F(CoreUseTest, BarsShowSharesOfTheTime) {
  EXPECT_EQ(
      CoreBars({{.cpus = {0, 18}, .busy = 1},
                {.cpus = {1, 19}, .busy = 0.5, .iowait = 0.25, .stolen = 0.05},
                {.cpus = {2}}},
               {"rank 0", "rank 1", "-"}),
      "  CPU 0,18 ######################################## 100 %  rank 0\n"
      "  CPU 1,19 ####################wwwwwwwwwwss........  50 %  rank 1\n"
      "  CPU 2    ........................................   0 %  -\n");
}

TEST(ProcessTimesTest, NamesMayContainParenthesesAndSpaces) {
  const auto time = ParseProcessStat(Stat("a) R (b", 100, 5, 2));
  ASSERT_TRUE(time.has_value());
  EXPECT_EQ(time->name, "a) R (b");
  EXPECT_EQ(time->ticks, 100);
  EXPECT_EQ(time->threads, 2);
  EXPECT_EQ(time->cpu, 5);
  EXPECT_EQ(time->parent, 1);
  EXPECT_EQ(time->group, 7);
  EXPECT_EQ(time->start_ticks, 5);
  EXPECT_FALSE(ParseProcessStat("12 (x) R 1").has_value());
  EXPECT_FALSE(ParseProcessStat("").has_value());
  const std::string most = "9223372036854775807";
  EXPECT_FALSE(
      ParseProcessStat(
          absl::StrReplaceAll(Stat("a", 100, 5), {{" 70 ", " " + most + " "},
                                                  {" 30 ", " " + most + " "}}))
          .has_value());
}

TEST_F(CoreUseTest, TimesOfEveryProcessAreRead) {
  SetProcess(12, "x", {{1, 0}});
  tree_.Write("/proc/meminfo", "MemTotal: 1");
  const ProcessTimes times = ReadProcessTimes(tree_.files());
  ASSERT_EQ(times.size(), 1U);
  EXPECT_EQ(times.at(12).name, "x");
}

}  // namespace
}  // namespace hvdlite::support
