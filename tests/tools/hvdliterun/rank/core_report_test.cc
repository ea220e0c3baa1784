#include "tools/hvdliterun/rank/core_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/testing/fakes/machine_files.h"
#include "tests/testing/golden.h"
#include "tests/tools/hvdliterun/plan/machines.h"

namespace hvdlite::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;
using ::testing::SizeIs;

constexpr int64_t kSecondNs = 1'000'000'000;

CoreReport Core(int cpu, double busy, BoundRanks ranks = {.computing = {0}}) {
  return {.use = {.cpus = {cpu}, .busy = busy}, .ranks = std::move(ranks)};
}

TEST(CoreLinesTest, LinesAreSentInPiecesAndRestored) {
  HostCores node = {.host = "n1", .seconds = 12.5};
  for (int core = 0; core < 256; ++core) {
    CoreReport report = Core(core, 0.001 * core);
    report.use.cpus.push_back(core + 256);
    report.use.iowait = 0.25;
    report.use.stolen = 0.125;
    report.ranks = {.computing = {core, core + 1}, .coordinating = {core + 2}};
    report.use.processes = {{.name = "a \"b", .id = 7, .share = 0.5},
                            {.name = "c", .id = 4'000'000, .share = 0.125}};
    node.cores.push_back(report);
  }
  const std::vector<std::string> lines = EncodeCores(node);
  EXPECT_GT(lines.size(), 1u);
  std::vector<CoreReport> arrived;
  for (const std::string& line : lines) {
    EXPECT_THAT(line, SizeIs(Le(3900u)));
    EXPECT_THAT(line, Not(HasSubstr("\n")));
    const std::optional<HostCores> some = DecodeCores(line);
    ASSERT_TRUE(some.has_value());
    EXPECT_EQ(some->host, "n1");
    EXPECT_EQ(some->seconds, 12.5);
    arrived.insert(arrived.end(), some->cores.begin(), some->cores.end());
  }
  EXPECT_EQ(arrived, node.cores);
}

TEST(CoreLinesTest, InvalidLinesAreRejected) {
  const std::string good =
      EncodeCores({.host = "a", .seconds = 1, .cores = {Core(0, 0.25)}})[0];
  ASSERT_NE(DecodeCores(good), std::nullopt);
  for (const std::string& line :
       {std::string(), std::string("{}"), std::string("[]"),
        absl::StrReplaceAll(good, {{"\"a\"", "1"}}),
        absl::StrReplaceAll(good, {{"\"use\"", "\"used\""}}),
        absl::StrReplaceAll(good, {{"0.25", "-1e30"}}),
        absl::StrReplaceAll(good, {{"0.25", "1e30"}})}) {
    EXPECT_EQ(DecodeCores(line), std::nullopt) << line;
  }
}

// A host with two cores: CPU 0 was busy for `busy_seconds`, CPU 1 for half of
// that.
class TrainingCoresTest : public ::testing::Test {
 protected:
  static int64_t Ticks(int seconds) { return seconds * sysconf(_SC_CLK_TCK); }

  void Look(int second, int busy_seconds) {
    tree_.Write(
        "/proc/stat",
        absl::StrCat("cpu0 ", Ticks(busy_seconds), " 0 0 ",
                     Ticks(second - busy_seconds), " 0 0 0 0\ncpu1 ",
                     Ticks(busy_seconds) / 2, " 0 0 ",
                     Ticks(second) - Ticks(busy_seconds) / 2, " 0 0 0 0"));
    cores_.Look(second * kSecondNs);
  }

  HostCores Reported() const {
    const std::vector<std::string> lines = cores_.Report("n1");
    EXPECT_THAT(lines, SizeIs(1));
    return lines.empty() ? HostCores()
                         : DecodeCores(lines.front()).value_or(HostCores());
  }

  hvdlite::testing::MachineFiles tree_;
  TrainingCores cores_{MachineFrom("core:2 pu:1"),
                       {{.compute_cores = {0}, .comm_core = 1}},
                       /*first_rank=*/3,
                       tree_.files()};
};

TEST_F(TrainingCoresTest, ReportCoversFirstStepToLastReport) {
  Look(10, 0);
  Look(12, 0);  // loading
  Look(14, 2);
  Look(16, 4);
  cores_.SawSteps(12 * kSecondNs + 1);
  Look(17, 4);  // no steps were reported since
  EXPECT_EQ(Reported(),
            (HostCores{.host = "n1",
                       .seconds = 4,
                       .cores = {Core(0, 1, {.computing = {3}}),
                                 Core(1, 0.5, {.coordinating = {3}})}}));
}

TEST_F(TrainingCoresTest, ReportStartsAtFirstReportIfMoreTimeFollows) {
  Look(10, 0);
  Look(11, 0);
  cores_.SawSteps(10 * kSecondNs);
  Look(12, 1);
  cores_.SawSteps(11 * kSecondNs);
  EXPECT_EQ(Reported().seconds, 2) << "no more time followed";
  Look(13, 2);
  cores_.SawSteps(12 * kSecondNs);
  EXPECT_EQ(Reported().seconds, 2);
  EXPECT_EQ(Reported().cores[0].use.busy, 1);
}

TEST_F(TrainingCoresTest, ReportIsEmptyWithoutStepsOrTime) {
  EXPECT_THAT(cores_.Report("n1"), IsEmpty());
  cores_.SawSteps(0);
  Look(10, 0);
  EXPECT_THAT(cores_.Report("n1"), IsEmpty());
  cores_.SawSteps(10 * kSecondNs);
  EXPECT_THAT(cores_.Report("n1"), IsEmpty());
}

TEST(DescribeCoresTest, IdleAndSharedCoresAreNamed) {
  CoreReport shared = Core(1, 1);
  shared.use.processes = {{.name = "train_resnet50", .id = 71, .share = 0.6},
                          {.name = "backup", .id = 99, .share = 0.35}};
  CoreReport idle = Core(2, 0.2, {.computing = {0, 1}});
  testing::ExpectGolden(DescribeCores(
      {{.host = "n1",
        .seconds = 12.4,
        .cores = {Core(0, 0.9), shared, idle,
                  Core(3, 0.01, {.coordinating = {0}}), Core(4, 0, {})}}}));
}

TEST(DescribeCoresTest, OtherHostsHaveBarsOnlyWithRemarks) {
  const auto host = [](const char* name, double busy) {
    return HostCores{.host = name, .seconds = 3, .cores = {Core(0, busy)}};
  };
  testing::ExpectGolden(
      DescribeCores({host("n1", 1), host("n2", 1), host("n3", 0.1)}));
}

}  // namespace
}  // namespace hvdlite::launch
