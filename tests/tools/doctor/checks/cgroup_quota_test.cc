#include "tools/doctor/checks/cgroup_quota.h"

#include <gtest/gtest.h>

#include "tests/testing/fakes/file_tree.h"

namespace hvdlite::doctor {
namespace {

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
