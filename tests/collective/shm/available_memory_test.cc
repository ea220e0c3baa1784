#include <gtest/gtest.h>

#include "collective/shm/shared_memory.h"
#include "tests/testing/fakes/machine_files.h"

namespace hvdlite::testing {
namespace {

using collective::AvailableMemory;

constexpr size_t kMiB = size_t{1} << 20;

// A machine with 1000 MiB available.
class AvailableMemoryTest : public ::testing::Test {
 protected:
  AvailableMemoryTest() { machine_.SetAvailable(1000 * kMiB); }

  void Cgroup2(const std::string& path, const std::string& limit, size_t used,
               const std::string& stat = "") {
    const std::string directory = "/sys/fs/cgroup" + path;
    machine_.Write(directory + "/memory.max", limit);
    machine_.Write(directory + "/memory.current", std::to_string(used));
    machine_.Write(directory + "/memory.stat", stat);
  }
  void Cgroup1(const std::string& path, size_t limit, size_t used,
               const std::string& stat = "") {
    const std::string directory = "/sys/fs/cgroup/memory" + path;
    machine_.Write(directory + "/memory.limit_in_bytes", std::to_string(limit));
    machine_.Write(directory + "/memory.usage_in_bytes", std::to_string(used));
    machine_.Write(directory + "/memory.stat", stat);
  }
  size_t AvailableMiB() { return AvailableMemory(machine_.root()) / kMiB; }

  MachineFiles machine_;
};

TEST_F(AvailableMemoryTest, WithoutCgroupsTheSystemsValueCounts) {
  EXPECT_EQ(AvailableMiB(), 1000U);
}

TEST_F(AvailableMemoryTest, WithoutFilesAllMemoryOfTheMachineCounts) {
  const MachineFiles empty;
  EXPECT_GT(AvailableMemory(empty.root()), kMiB);
}

TEST_F(AvailableMemoryTest, MachineOfTheTestHasAvailableMemory) {
  EXPECT_GT(AvailableMemory(), kMiB);
}

TEST_F(AvailableMemoryTest, RestOfTheCgroupsLimitCounts) {
  machine_.Write("/proc/self/cgroup", "0::/job/task");
  Cgroup2("/job/task", std::to_string(300 * kMiB), 100 * kMiB);
  EXPECT_EQ(AvailableMiB(), 200U);
  Cgroup2("/job/task", "max", 100 * kMiB);
  EXPECT_EQ(AvailableMiB(), 1000U);
}

TEST_F(AvailableMemoryTest, TightestLimitOfAllAncestorsCounts) {
  machine_.Write("/proc/self/cgroup", "0::/job/task");
  Cgroup2("/job/task", "max", 10 * kMiB);
  Cgroup2("/job", std::to_string(500 * kMiB), 450 * kMiB);
  Cgroup2("", std::to_string(600 * kMiB), 460 * kMiB);
  EXPECT_EQ(AvailableMiB(), 50U);
}

TEST_F(AvailableMemoryTest, FilePagesOfTheCgroupCountAsAvailable) {
  machine_.Write("/proc/self/cgroup", "0::/job");
  Cgroup2("/job", std::to_string(300 * kMiB), 300 * kMiB,
          "anon 1\nactive_file 104857600\nfile_dirty 7\n"
          "inactive_file 20971520\nslab_reclaimable 1048576\nshmem 209715200");
  EXPECT_EQ(AvailableMiB(), 121U);
}

// In a container the mount begins at its own group, whatever the path.
TEST_F(AvailableMemoryTest, PathNeedNotExistBelowTheMount) {
  machine_.Write("/proc/self/cgroup", "0::/../outside/container");
  Cgroup2("", std::to_string(64 * kMiB), 60 * kMiB);
  EXPECT_EQ(AvailableMiB(), 4U);
}

TEST_F(AvailableMemoryTest, UseAboveTheLimitLeavesNothing) {
  machine_.Write("/proc/self/cgroup", "0::/job");
  Cgroup2("/job", std::to_string(64 * kMiB), 65 * kMiB);
  EXPECT_EQ(AvailableMiB(), 0U);
}

TEST_F(AvailableMemoryTest, LimitsOfVersionOneCountToo) {
  machine_.Write("/proc/self/cgroup",
                 "9:name=systemd:/\n4:cpu,memory:/job/task\n1:cpuset:/\n0::/");
  Cgroup1("/job/task", 9223372036854771712U, 10 * kMiB);
  Cgroup1("/job", 300 * kMiB, 290 * kMiB,
          "cache 5\nactive_file 1\ntotal_active_file 20971520\n"
          "total_inactive_file 1048576");
  Cgroup1("", 9223372036854771712U, 900 * kMiB);
  EXPECT_EQ(AvailableMiB(), 31U);
}

}  // namespace
}  // namespace hvdlite::testing
