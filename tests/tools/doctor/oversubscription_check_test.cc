#include "tools/doctor/oversubscription_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/doctor/file_tree.h"
#include "tests/tools/doctor/finding_matchers.h"

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
  EXPECT_THAT(findings[0], IsOk("3 ranks with 4 threads on 5 CPUs"));
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
              ElementsAre(IsOk("2 ranks with 2 threads on 2 CPUs")));
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

TEST(OpenMpThreadsTest, FollowsTheEnvironment) {
  const auto threads =
      [](std::vector<std::pair<std::string, std::string>> set) {
        return OpenMpThreads(base::FakeEnvironment(std::move(set)), 8);
      };
  EXPECT_EQ(threads({}), 8);
  EXPECT_EQ(threads({{"OMP_NUM_THREADS", "3"}}), 3);
  EXPECT_EQ(threads({{"OMP_NUM_THREADS", "4,2"}}), 4);
  EXPECT_EQ(threads({{"OMP_NUM_THREADS", "none"}}), 8);
  EXPECT_EQ(threads({{"OMP_THREAD_LIMIT", "5"}}), 5);
  EXPECT_EQ(threads({{"OMP_NUM_THREADS", "64"}, {"OMP_THREAD_LIMIT", "5"}}), 5);
}

TEST(CgroupQuotaTest, SmallestLimitOnTheWayUpCounts) {
  FileTree tree;
  tree.Write("/proc/self/cgroup", "0::/job/step");
  tree.Write("/sys/fs/cgroup/job/cpu.max", "150000 100000");
  tree.Write("/sys/fs/cgroup/job/step/cpu.max", "max 100000");
  tree.Write("/sys/fs/cgroup/cpu.max", "400000 100000");
  EXPECT_DOUBLE_EQ(CgroupQuota(tree.files()), 1.5);
}

TEST(CgroupQuotaTest, InAContainerTheRootOfTheFilesIsItsGroup) {
  FileTree tree;
  tree.Write("/proc/self/cgroup", "0::/docker/abc");
  tree.Write("/sys/fs/cgroup/cpu.max", "300000 100000");
  EXPECT_DOUBLE_EQ(CgroupQuota(tree.files()), 3);
}

TEST(CgroupQuotaTest, ReadsVersionOne) {
  FileTree tree;
  tree.Write("/proc/self/cgroup",
             "5:memory:/x\n4:cpu,cpuacct:/docker/abc\n3:cpuset:/\n0::/");
  tree.Write("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "50000");
  tree.Write("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us",
             "100000");
  EXPECT_DOUBLE_EQ(CgroupQuota(tree.files()), 0.5);
}

TEST(CgroupQuotaTest, NoLimitIsZero) {
  FileTree tree;
  tree.Write("/proc/self/cgroup", "1:cpu:/\n0::/");
  tree.Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
  tree.Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  EXPECT_DOUBLE_EQ(CgroupQuota(tree.files()), 0);
  EXPECT_DOUBLE_EQ(CgroupQuota(FileTree().files()), 0);
}

}  // namespace
}  // namespace hvdlite::doctor
