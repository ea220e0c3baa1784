#include <gtest/gtest.h>

#include "tests/tools/doctor/checks/expect_findings.h"
#include "tools/doctor/checks/rank_threads.h"

namespace hvdlite::doctor {
namespace {

ThreadFacts On(const std::string& host, std::vector<int> cpus, int threads,
               double quota = 0) {
  return {.host = host,
          .cpus = std::move(cpus),
          .threads = threads,
          .quota = quota};
}

TEST(OversubscriptionTest, RanksWithEnoughCpusAreOneOkFinding) {
  ExpectFindings(
      JudgeThreads({On("b", {0, 1}, 2), On("a", {2, 3}, 1), On("b", {2}, 1)}),
      "ok");
}

TEST(OversubscriptionTest, MoreThreadsThanCpusAreAProblem) {
  ExpectFindings(JudgeThreads({On("a", {0, 1}, 8)}), "problem");
}

TEST(OversubscriptionTest, RanksThatShareCpusAddUp) {
  ExpectFindings(JudgeThreads({On("a", {0, 1}, 2), On("a", {1, 2}, 2),
                               On("a", {2, 3}, 1), On("a", {7}, 1)}),
                 "problem ok");
}

TEST(OversubscriptionTest, RemedyForMoreRanksThanCpusIsFewerRanks) {
  ExpectFindings(
      JudgeThreads({On("a", {0}, 1), On("a", {0}, 1), On("a", {0}, 1)}),
      "problem");
}

TEST(OversubscriptionTest, SameCpuNumbersOnOtherHostsDoNotOverlap) {
  ExpectFindings(JudgeThreads({On("a", {0}, 1), On("b", {0}, 1)}), "ok");
}

TEST(OversubscriptionTest, ContainerQuotaLimitsThreads) {
  ExpectFindings(
      JudgeThreads({On("a", {0, 1}, 2, 2.5), On("a", {2, 3}, 2, 2.5)}),
      "problem ok");
  ExpectFindings(JudgeThreads({On("a", {0, 1}, 2, 2)}), "ok");
}

// A rank on a host with eight CPUs on four cores.
ThreadFacts Bound(std::vector<std::set<int>> cores_of_thread) {
  ThreadFacts facts = On("a", {0, 1, 2, 3, 4, 5, 6, 7},
                         static_cast<int>(cores_of_thread.size()));
  facts.cores = {0, 1, 2, 3};
  facts.cores_of_thread = std::move(cores_of_thread);
  return facts;
}

TEST(OversubscriptionTest, RanksThatBindToTheSameCoresAreAWarning) {
  ExpectFindings(
      JudgeThreads({Bound({{0}, {1}}), Bound({{0}, {1}}), On("b", {0}, 1)}),
      "warning ok");
  ExpectFindings(JudgeThreads({Bound({{0}}), Bound({{0}})}), "warning");
}

TEST(OversubscriptionTest, UnboundRanksAndRanksOnOtherCoresAreOk) {
  ThreadFacts unbound = Bound({});
  unbound.threads = 2;
  for (const auto& ranks : std::vector<std::vector<ThreadFacts>>{
           {Bound({{0}, {1}}), Bound({{2}, {3}})},
           {Bound({{0, 1}}), Bound({{0, 1}})},
           {Bound({{0}}), unbound},
           {unbound, unbound},
           {Bound({{0}, {0}})}}) {
    ExpectFindings(JudgeThreads(ranks), "ok");
  }
}

TEST(OversubscriptionTest, SpinningThreadsOnAllCpusAreAWarning) {
  ThreadFacts rank = On("a", {0, 1, 2, 3}, 4);
  rank.spinning = "OMP_WAIT_POLICY=active";
  ExpectFindings(JudgeThreads({rank}), "warning");
  rank.threads = 3;
  ExpectFindings(JudgeThreads({rank}), "ok");
}

TEST(SmtTest, PossibleSharingIsANoteCertainSharingAWarning) {
  struct Case {
    int ranks, cpus, cores, threads;  // of each rank
    const char* verdict;
  };
  for (const Case& one : {Case{1, 4, 2, 4, "warning"},
                          {1, 4, 2, 2, "note"},
                          {1, 2, 2, 2, "ok"},
                          {2, 16, 8, 3, "note"},
                          {2, 16, 8, 8, "warning"},
                          {4, 4, 2, 1, "warning"}}) {
    ThreadFacts rank = On("a", RanksUpTo(one.cpus), one.threads);
    rank.cores = RanksUpTo(one.cores);
    ExpectFindings(JudgeSmt(std::vector<ThreadFacts>(one.ranks, rank)),
                   one.verdict);
  }
}

TEST(SmtTest, ThreadsBoundToDifferentCoresAreOk) {
  ExpectFindings(JudgeSmt({Bound({{0}, {1}})}), "ok");
  ExpectFindings(JudgeSmt({Bound({{0}}), Bound({{1}, {2}})}), "ok");
  for (const auto& ranks :
       std::vector<std::vector<ThreadFacts>>{{Bound({{0}, {0}})},
                                             {Bound({{0, 1}})},
                                             {Bound({{0}}), Bound({{0}})}}) {
    ExpectFindings(JudgeSmt(ranks), "note");
  }
  ExpectFindings(JudgeSmt({Bound({{0}, {1}, {2}, {3}, {0}})}), "warning");
}

TEST(OversubscriptionTest, SpinningIsReadFromTheEnvironment) {
  const auto by = [](std::vector<std::pair<std::string, std::string>> set) {
    return SpinningBy(base::FakeEnvironment(std::move(set)));
  };
  EXPECT_EQ(by({}), "");
  EXPECT_EQ(by({{"OMP_WAIT_POLICY", "ACTIVE"}}), "OMP_WAIT_POLICY=active");
  EXPECT_EQ(by({{"OMP_WAIT_POLICY", "passive"}}), "");
  EXPECT_EQ(by({{"GOMP_SPINCOUNT", "20M"}}), "GOMP_SPINCOUNT=20m");
  EXPECT_EQ(by({{"GOMP_SPINCOUNT", "infinite"}}), "GOMP_SPINCOUNT=infinite");
  EXPECT_EQ(by({{"GOMP_SPINCOUNT", "1000"}, {"OMP_WAIT_POLICY", "active"}}),
            "");
}

TEST(OversubscriptionTest, TinyContainerQuotaIsNotRounded) {
  ExpectFindings(
      JudgeThreads({On("a", {0, 1}, 2, 1e-9), On("a", {2, 3}, 2, 1e-9)}),
      "problem ok");
}

TEST(OversubscriptionTest, SumOfThreadsDoesNotOverflow) {
  const std::vector<ThreadFacts> ranks(3000, On("a", {0, 1}, 1 << 20));
  ExpectFindings(JudgeThreads(ranks), "problem");
}

}  // namespace
}  // namespace hvdlite::doctor
