#include "tools/doctor/checks/rank_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/testing/fakes/machine_files.h"

namespace hvdlite::doctor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::SizeIs;

TEST(ThreadsByDefaultTest, LibTorchIgnoresTheBinding) {
  const std::vector<support::Library> openmp = {{"libgomp.so.1", "/l"}};
  const std::vector<support::Library> old = {{"libtorch_cpu.so.1.13", "/l"}};
  const std::vector<support::Library> recent = {{"libtorch_cpu.so.2.6", "/l"}};
  const std::vector<support::Library> wheel = {{"libtorch_cpu.so", "/l"}};
  const MachineSize machine = {.cpus = 8, .cores = 4};
  EXPECT_EQ(ThreadsByDefault(openmp, 1, machine), 1);
  EXPECT_EQ(ThreadsByDefault(recent, 1, machine), 4);
  EXPECT_EQ(ThreadsByDefault(wheel, 1, machine), 4);
#ifdef __x86_64__
  EXPECT_EQ(ThreadsByDefault(old, 1, machine), 4);
  EXPECT_EQ(ThreadsByDefault(old, 1, {.cpus = 1, .cores = 1}), 1);
#else
  EXPECT_EQ(ThreadsByDefault(old, 1, machine), 8);
#endif
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

TEST(SharersTest, RanksShareDirectlyOrThroughOthers) {
  const std::vector<Sharers> groups =
      GroupByOverlap({{0, {1, 2}}, {1, {5}}, {2, {3, 4}}, {3, {2, 3}}});
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_THAT(groups[0].ranks, ElementsAre(1));
  EXPECT_THAT(groups[1].ranks, ElementsAre(0, 2, 3));
  EXPECT_THAT(groups[1].numbers, ElementsAre(1, 2, 3, 4));
}

TEST(PlacesTest, ReadsListsAndIntervals) {
  EXPECT_THAT(ParsePlaces("{0,1},{2,3}"),
              Optional(ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3))));
  EXPECT_THAT(ParsePlaces("{0:2}:2:4"),
              Optional(ElementsAre(ElementsAre(0, 1), ElementsAre(4, 5))));
  EXPECT_THAT(
      ParsePlaces("{0:2:8},{3}:2"),
      Optional(ElementsAre(ElementsAre(0, 8), ElementsAre(3), ElementsAre(4))));
}

TEST(PlacesTest, InvalidListIsRejected) {
  for (const char* text : {"",
                           "cores",
                           "{",
                           "{}",
                           "{0",
                           "{0},",
                           "!{1}",
                           "{a}",
                           "{0:0}",
                           "{0:1:}",
                           "{-1}",
                           "{0}:2:-1",
                           "{0}x",
                           "{0:99999999}",
                           "{0}:9:2147483647",
                           "{0:99999999999}",
                           "{99999999999}",
                           "{-99999999999}",
                           "{0:-1}",
                           "{0:4}:-1",
                           "{0:1:99999999999}",
                           "{65536}",
                           "{2147483647:2:2147483647}",
                           "threads(9999999999)",
                           "cores(-1)"}) {
    EXPECT_FALSE(ParsePlaces(text).has_value()) << text;
  }
}

TEST(PlacesTest, HugeListIsRejected) {
  for (const char* text : {"{0:65535}:65535:0", "{0:32768}:32768",
                           "{0:65535:0,0:65535:0}:65535:0"}) {
    EXPECT_FALSE(ParsePlaces(text).has_value()) << text;
  }
  EXPECT_THAT(ParsePlaces("{0:4}:16384:4"), Optional(SizeIs(16384)));
}

base::Environment Variables(const std::string& places,
                            const std::string& bind) {
  std::vector<std::pair<std::string, std::string>> variables;
  if (!places.empty()) variables.emplace_back("OMP_PLACES", places);
  if (!bind.empty()) variables.emplace_back("OMP_PROC_BIND", bind);
  return base::FakeEnvironment(variables);
}

// CPUs n and n + 4 are threads of core n.
std::vector<std::set<int>> Cores(const std::string& places,
                                 const std::string& bind, int threads = 4,
                                 const std::vector<int>& cpus = {0, 1, 2, 3, 4,
                                                                 5, 6, 7}) {
  return CoresOfThreads(Variables(places, bind), threads, cpus,
                        [](int cpu) { return cpu % 4; });
}

auto CoresAre(std::vector<std::set<int>> cores) {
  return ::testing::ElementsAreArray(std::move(cores));
}

TEST(CoresOfThreadsTest, CoresWithBindingGiveEachThreadOne) {
  for (const char* bind : {"true", "close", "spread", "SPREAD, close", ""}) {
    EXPECT_THAT(Cores("cores", bind), CoresAre({{0}, {1}, {2}, {3}})) << bind;
  }
  EXPECT_THAT(Cores("Cores(4)", "true"), CoresAre({{0}, {1}, {2}, {3}}));
  EXPECT_THAT(Cores("{0,4},{1,5},{3,7}", "close", 3),
              CoresAre({{0}, {1}, {3}}));
  EXPECT_THAT(Cores("{0,1},{2,3}", "close", 2), CoresAre({{0, 1}, {2, 3}}));
}

TEST(CoresOfThreadsTest, FewerThreadsThanPlacesFollowTheBinding) {
  EXPECT_THAT(Cores("cores", "close", 2), CoresAre({{0}, {1}}));
  EXPECT_THAT(Cores("cores", "spread", 2), CoresAre({{0}, {2}}));
  EXPECT_THAT(Cores("cores", "spread", 3), CoresAre({{0}, {2}, {3}}));
  EXPECT_THAT(Cores("cores", "master", 2), CoresAre({{0}, {0}}));
  EXPECT_THAT(Cores("cores", "primary", 2), CoresAre({{0}, {0}}));
}

TEST(CoresOfThreadsTest, MoreThreadsThanPlacesAreDistributed) {
  EXPECT_THAT(Cores("cores(2)", "close"), CoresAre({{0}, {0}, {1}, {1}}));
  EXPECT_THAT(Cores("{0}", "spread", 2), CoresAre({{0}, {0}}));
}

TEST(CoresOfThreadsTest, HyperthreadsOfACoreFollowEachOther) {
  EXPECT_THAT(Cores("threads", "close"), CoresAre({{0}, {0}, {1}, {1}}));
  EXPECT_THAT(Cores("", "true"), CoresAre({{0}, {0}, {1}, {1}}));
  EXPECT_THAT(Cores("threads", "spread"), CoresAre({{0}, {1}, {2}, {3}}));
  EXPECT_THAT(Cores("threads(1)", "close", 1), CoresAre({{0}}));
}

TEST(CoresOfThreadsTest, ForbiddenCpusDoNotCount) {
  EXPECT_THAT(Cores("cores", "close", 2, {2, 3, 7}), CoresAre({{2}, {3}}));
  EXPECT_THAT(Cores("{0,1},{2,3}", "close", 2, {2, 7}), CoresAre({{2}, {2}}))
      << "the first place is empty";
  EXPECT_THAT(Cores("{0},{1}", "", 2, {2, 3}), IsEmpty());
  EXPECT_THAT(Cores("{0},{1}", "close", 2, {2, 3}), CoresAre({{2}, {3}}))
      << "same as without OMP_PLACES";
}

TEST(CoresOfThreadsTest, UnboundThreadsAndUnknownPlacesHaveNoCores) {
  EXPECT_THAT(Cores("cores", "false"), IsEmpty());
  EXPECT_THAT(Cores("", ""), IsEmpty());
  for (const char* places : {"sockets", "cores(0)", "cores(2", "coresx"}) {
    EXPECT_THAT(Cores(places, "close"), IsEmpty()) << places;
  }
}

TEST(PlacesOutsideTest, FindsPlacesWithoutAnyCpuOfTheRank) {
  const auto outside = [](const char* places) {
    return PlacesOutside(Variables(places, ""), {2, 3});
  };
  EXPECT_EQ(outside("{0},{1}"), "{0},{1}");
  for (const char* places : {"{0},{1, 2}", "cores", ""}) {
    EXPECT_EQ(outside(places), "") << places;
  }
}

TEST(CgroupQuotaTest, SmallestLimitOfGroupAndParentsCounts) {
  testing::MachineFiles tree;
  tree.Write("/proc/self/cgroup", "0::/job/step");
  tree.Write("/sys/fs/cgroup/job/cpu.max", "150000 100000");
  tree.Write("/sys/fs/cgroup/job/step/cpu.max", "max 100000");
  tree.Write("/sys/fs/cgroup/cpu.max", "400000 100000");
  EXPECT_DOUBLE_EQ(CgroupQuota(tree.files()), 1.5);
}

TEST(CgroupQuotaTest, InAContainerTheRootDirectoryIsItsGroup) {
  testing::MachineFiles tree;
  tree.Write("/proc/self/cgroup", "0::/docker/abc");
  tree.Write("/sys/fs/cgroup/cpu.max", "300000 100000");
  EXPECT_DOUBLE_EQ(CgroupQuota(tree.files()), 3);
}

TEST(CgroupQuotaTest, ReadsVersionOne) {
  testing::MachineFiles tree;
  tree.Write("/proc/self/cgroup",
             "5:memory:/x\n4:cpu,cpuacct:/docker/abc\n3:cpuset:/\n0::/");
  tree.Write("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "50000");
  tree.Write("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us",
             "100000");
  EXPECT_DOUBLE_EQ(CgroupQuota(tree.files()), 0.5);
}

TEST(CgroupQuotaTest, NoLimitIsZero) {
  testing::MachineFiles tree;
  tree.Write("/proc/self/cgroup", "1:cpu:/\n0::/");
  tree.Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
  tree.Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  EXPECT_DOUBLE_EQ(CgroupQuota(tree.files()), 0);
  EXPECT_DOUBLE_EQ(CgroupQuota(testing::MachineFiles().files()), 0);
}

TEST(CgroupQuotaTest, InvalidQuotaIsNoLimit) {
  for (const char* text :
       {"", "max", "max 100000", "100 0", "0 100000", "-1 100000", "100 -1",
        "100", "nan 1", "inf 1", "1 inf", "1 nan", "1e999 1", "x y", "1 2 3",
        "100000x 100000"}) {
    testing::MachineFiles tree;
    tree.Write("/proc/self/cgroup", "0::/a\n4:cpu:/a");
    tree.Write("/sys/fs/cgroup/a/cpu.max", text);
    tree.Write("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", text);
    tree.Write("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "0");
    EXPECT_EQ(CgroupQuota(tree.files()), 0) << text;
    // The parent group's quota still counts.
    tree.Write("/sys/fs/cgroup/cpu.max", "150000 100000");
    EXPECT_DOUBLE_EQ(CgroupQuota(tree.files()), 1.5) << text;
  }
}

TEST(CgroupQuotaTest, UnusualGroupPathsAreAccepted) {
  for (const char* path :
       {"", "a", "//", "/..", "/../..", "/a:b/c d", "/a/", "/\xff\x01", "a/b",
        "/system.slice/a\\x2db.service (deleted)"}) {
    testing::MachineFiles tree;
    tree.Write("/proc/self/cgroup", absl::StrCat("x\n:\n::\n0::", path));
    tree.Write("/sys/fs/cgroup/cpu.max", "150000 100000");
    EXPECT_DOUBLE_EQ(CgroupQuota(tree.files()), 1.5) << path;
  }
}

}  // namespace
}  // namespace hvdlite::doctor
