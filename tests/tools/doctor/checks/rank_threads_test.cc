#include "tools/doctor/checks/rank_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/fakes/file_tree.h"

namespace hvdlite::doctor {
namespace {

using ::testing::ElementsAre;

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

TEST(CoreOfCpuTest, IsTheLowestOfItsThreads) {
  FileTree tree;
  tree.Write("/sys/devices/system/cpu/cpu12/topology/thread_siblings_list",
             "8,12");
  EXPECT_EQ(CoreOfCpu(tree.files(), 12), 8);
  EXPECT_EQ(CoreOfCpu(tree.files(), 3), 3) << "not told";
}

TEST(SharersTest, ShareDirectlyOrThroughOthers) {
  const std::vector<Sharers> groups =
      GroupByOverlap({{0, {1, 2}}, {1, {5}}, {2, {3, 4}}, {3, {2, 3}}});
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_THAT(groups[0].ranks, ElementsAre(1));
  EXPECT_THAT(groups[1].ranks, ElementsAre(0, 2, 3));
  EXPECT_THAT(groups[1].numbers, ElementsAre(1, 2, 3, 4));
}

}  // namespace
}  // namespace hvdlite::doctor
