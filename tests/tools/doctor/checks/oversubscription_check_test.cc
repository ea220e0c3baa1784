#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/doctor/checks/finding_matchers.h"
#include "tools/doctor/checks/host_checks.h"

namespace hvdlite::doctor {
namespace {

using ::testing::ElementsAre;

ThreadFacts On(const std::string& host, std::vector<int> cpus, int threads,
               double quota = 0) {
  return {.host = host,
          .cpus = std::move(cpus),
          .threads = threads,
          .quota = quota};
}

TEST(OversubscriptionTest, ThreadsThatFitAreOkInOneLine) {
  const std::vector<Finding> findings =
      JudgeThreads({On("b", {0, 1}, 2), On("a", {2, 3}, 1), On("b", {2}, 1)});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_THAT(findings[0], IsOk("3 ranks with 4 threads in all on 5 CPUs"));
  EXPECT_THAT(findings[0].ranks, ElementsAre(0, 1, 2));
}

TEST(OversubscriptionTest, MoreThreadsThanCpusAreAProblem) {
  EXPECT_THAT(JudgeThreads({On("a", {0, 1}, 8)}),
              ElementsAre(Says(Verdict::kProblem,
                               "1 rank on a with 8 threads on 2 CPUs (0-1)",
                               "export OMP_NUM_THREADS=2")));
}

TEST(OversubscriptionTest, RanksThatShareCpusAddUp) {
  const std::vector<Finding> findings =
      JudgeThreads({On("a", {0, 1}, 2), On("a", {1, 2}, 2), On("a", {2, 3}, 1),
                    On("a", {7}, 1)});
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_THAT(findings[0],
              Says(Verdict::kProblem, "5 threads in all on 4 CPUs (0-3)",
                   "export OMP_NUM_THREADS=1"));
  EXPECT_THAT(findings[0].ranks, ElementsAre(0, 1, 2));
  EXPECT_THAT(findings[1], IsOk("1 rank with 1 thread on 1 CPU"));
  EXPECT_THAT(findings[1].ranks, ElementsAre(3));
}

TEST(OversubscriptionTest, MoreRanksThanCpusAreToldToBeFewer) {
  EXPECT_THAT(
      JudgeThreads({On("a", {0}, 1), On("a", {0}, 1), On("a", {0}, 1)}),
      ElementsAre(Says(Verdict::kProblem, "3 ranks on a", "start 1 rank ")));
}

TEST(OversubscriptionTest, SameCpusOfOtherHostsAreOthers) {
  EXPECT_THAT(JudgeThreads({On("a", {0}, 1), On("b", {0}, 1)}),
              ElementsAre(IsOk("2 ranks with 2 threads in all on 2 CPUs")));
}

TEST(OversubscriptionTest, AContainersShareCounts) {
  EXPECT_THAT(
      JudgeThreads({On("a", {0, 1}, 2, 2.5), On("a", {2, 3}, 2, 2.5)}),
      ElementsAre(Says(Verdict::kProblem, "grants 2.5 CPUs, for 4 threads",
                       "export OMP_NUM_THREADS=1"),
                  HasVerdict(Verdict::kOk)));
  EXPECT_THAT(JudgeThreads({On("a", {0, 1}, 2, 2)}),
              ElementsAre(HasVerdict(Verdict::kOk)));
}

// Of a host with eight CPUs on four cores.
ThreadFacts Bound(std::vector<std::set<int>> cores_of_thread) {
  ThreadFacts facts = On("a", {0, 1, 2, 3, 4, 5, 6, 7},
                         static_cast<int>(cores_of_thread.size()));
  facts.cores_of_thread = std::move(cores_of_thread);
  return facts;
}

TEST(OversubscriptionTest, RanksThatBindToTheSameCoresAreAWarning) {
  const std::vector<Finding> findings =
      JudgeThreads({Bound({{0}, {1}}), Bound({{0}, {1}}), On("b", {0}, 1)});
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_THAT(findings[0],
              Says(Verdict::kWarning,
                   "2 ranks on a bind 4 threads in all to the same 2 cores",
                   "slot:PE=2 --bind-to core; or export OMP_PROC_BIND=false"));
  EXPECT_THAT(findings[0].ranks, ElementsAre(0, 1));
  EXPECT_THAT(findings[1], IsOk("1 rank with 1 thread on 1 CPU"));
  EXPECT_THAT(JudgeThreads({Bound({{0}}), Bound({{0}})}),
              ElementsAre(Says(Verdict::kWarning, "to the same core:", "")));
}

TEST(OversubscriptionTest, RanksThatBindToOtherCoresOrNotAtAllAreOk) {
  ThreadFacts unbound = Bound({});
  unbound.threads = 2;
  for (const auto& ranks : std::vector<std::vector<ThreadFacts>>{
           {Bound({{0}, {1}}), Bound({{2}, {3}})},
           {Bound({{0, 1}}), Bound({{0, 1}})},
           {Bound({{0}}), unbound},
           {unbound, unbound},
           {Bound({{0}, {0}})}}) {
    EXPECT_THAT(JudgeThreads(ranks), ElementsAre(HasVerdict(Verdict::kOk)));
  }
}

TEST(OversubscriptionTest, ThreadsThatSpinOnAllCpusAreAWarning) {
  ThreadFacts rank = On("a", {0, 1, 2, 3}, 4);
  rank.spinning = "OMP_WAIT_POLICY=active";
  EXPECT_THAT(
      JudgeThreads({rank}),
      ElementsAre(Says(Verdict::kWarning,
                       "(OMP_WAIT_POLICY=active), and 4 threads on a leave "
                       "none of 4 CPUs free",
                       "unset OMP_WAIT_POLICY, or export OMP_NUM_THREADS=3")));
  rank.threads = 3;
  EXPECT_THAT(JudgeThreads({rank}), ElementsAre(HasVerdict(Verdict::kOk)));
}

TEST(OversubscriptionTest, TheSpinningOfThreadsIsReadFromTheEnvironment) {
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

TEST(OversubscriptionTest, ASmallShareOfAContainerIsToldAsItIs) {
  const std::vector<Finding> findings =
      JudgeThreads({On("a", {0, 1}, 2, 1e-9), On("a", {2, 3}, 2, 1e-9)});
  ASSERT_FALSE(findings.empty());
  EXPECT_THAT(findings[0],
              Says(Verdict::kProblem, "grants 1e-09 CPUs, for 4 threads",
                   "start 1 rank here"));
}

TEST(OversubscriptionTest, MoreThreadsThanANumberHolds) {
  const std::vector<ThreadFacts> ranks(3000, On("a", {0, 1}, 1 << 20));
  EXPECT_THAT(JudgeThreads(ranks),
              ElementsAre(Says(Verdict::kProblem,
                               "3000 ranks on a with 3145728000 threads",
                               "start 2 ranks here")));
}

}  // namespace
}  // namespace hvdlite::doctor
