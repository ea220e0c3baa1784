#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/doctor/checks/expect_findings.h"
#include "tools/doctor/checks/host_checks.h"

namespace hvdlite::doctor {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

CpuFacts Cpu(int cpu, double share, double gflops = 50) {
  return {.host = "node7",
          .rank = cpu / 2,
          .cpu = cpu,
          .wall_seconds = 0.1,
          .cpu_seconds = 0.1 * share,
          .steal_seconds = 0,
          .gflops = gflops};
}

TEST(SlowCoreTest, EqualCpusAreOk) {
  ExpectFindings(JudgeCpus({Cpu(0, 1), Cpu(1, 0.99), Cpu(2, 0.95)}), "ok");
}

TEST(SlowCoreTest, ACompetingProcessIsNamed) {
  CpuFacts shared = Cpu(3, 0.52);
  shared.competitor = "python3 (pid 1234)";
  ExpectFindings(JudgeCpus({Cpu(0, 1), shared}), "problem ok");
}

TEST(SlowCoreTest, SlightlyLessCpuTimeIsAWarning) {
  ExpectFindings(JudgeCpus({Cpu(0, 0.85)}), "warning");
}

TEST(SlowCoreTest, TimeTakenByTheHypervisorIsReported) {
  CpuFacts stolen = Cpu(1, 0.6);
  stolen.steal_seconds = 0.035;
  stolen.competitor = "innocent (pid 1)";
  ExpectFindings(JudgeCpus({stolen}), "problem");
}

TEST(SlowCoreTest, SlowCpuIsAWarning) {
  ExpectFindings(JudgeCpus({Cpu(0, 1), Cpu(1, 1), Cpu(2, 1, 30)}),
                 "warning ok");
}

TEST(SlowCoreTest, MoreThreadsThanFreeCpusAreAWarning) {
  ThreadFacts rank = {.host = "node7", .cpus = {0, 1, 2, 3}, .threads = 4};
  const std::vector<CpuFacts> cpus = {Cpu(0, 1), Cpu(1, 0.5), Cpu(2, 1),
                                      Cpu(3, 1)};
  ExpectFindings(JudgeFreeCpus({rank}, cpus), "warning");
  rank.spinning = "GOMP_SPINCOUNT=infinite";
  ExpectFindings(JudgeFreeCpus({rank}, cpus), "warning");
  rank.threads = 3;
  ExpectFindings(JudgeFreeCpus({rank}, cpus), "");
  rank.threads = 4;
  ExpectFindings(JudgeFreeCpus({rank}, {Cpu(0, 1), Cpu(1, 1)}), "");
}

TEST(SlowCoreTest, RanksWithOneThreadGetNoWarning) {
  const ThreadFacts rank = {.host = "node7", .cpus = {0}, .threads = 1};
  ExpectFindings(JudgeFreeCpus({rank}, {Cpu(0, 0.5)}), "");
}

TEST(SlowCoreTest, WithoutCpusThereIsANote) {
  ExpectFindings(JudgeCpus({}), "note");
}

TEST(CpusToProbeTest, EachCpuIsProbedOnceByARankThatMayUseIt) {
  const std::vector<std::string> hosts = {"a", "a", "b", "a"};
  const std::vector<std::vector<int>> cpus = {
      {0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1}, {3, 4}};
  std::vector<int> on_a;
  for (const int rank : {0, 1, 3}) {
    for (const int cpu : CpusToProbe(rank, hosts, cpus)) {
      EXPECT_THAT(cpus[rank], ::testing::Contains(cpu));
      on_a.push_back(cpu);
    }
  }
  EXPECT_THAT(on_a, UnorderedElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(CpusToProbe(0, hosts, cpus), ElementsAre(0, 2));
  EXPECT_THAT(CpusToProbe(2, hosts, cpus), ElementsAre(0, 1));
}

TEST(CompetitorTest, CompetitorIsTheBusiestOtherProcessOnTheCpu) {
  const auto process = [](const char* name, int64_t ticks, int cpu,
                          int64_t threads = 1) {
    return support::ProcessTime{
        .name = name, .ticks = ticks, .threads = threads, .cpu = cpu};
  };
  const support::ProcessTimes before = {
      {1, process("own", 0, 3)},     {2, process("old", 1000, 3)},
      {3, process("busy", 10, 3)},   {4, process("elsewhere", 0, 2)},
      {5, process("team", 0, 2, 8)}, {7, process("own", 0, 2, 8)}};
  support::ProcessTimes after = before;
  after[7].ticks = 90;
  EXPECT_EQ(CompetitorOn(3, before, after, 1), "");
  after[1].ticks = 10;
  after[4].ticks = 10;
  EXPECT_EQ(CompetitorOn(3, before, after, 1), "");
  after[5].ticks = 50;
  EXPECT_EQ(CompetitorOn(3, before, after, 1), "team (pid 5)");
  after[3].ticks = 15;
  EXPECT_EQ(CompetitorOn(3, before, after, 1), "busy (pid 3)");
  after[6] = process("new", 7, 3);
  EXPECT_EQ(CompetitorOn(3, before, after, 1), "new (pid 6)");
}

}  // namespace
}  // namespace hvdlite::doctor
