#include "tools/doctor/checks/host_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/testing/fakes/machine_files.h"
#include "tests/tools/doctor/checks/expect_findings.h"

namespace hvdlite::doctor {
namespace {

using ::testing::ElementsAre;

constexpr char kCpu[] = "/sys/devices/system/cpu/cpu";
constexpr char kNode[] = "/sys/devices/system/node/";

TEST(NumaTest, FindsTheNodesOfTheCpus) {
  testing::MachineFiles tree;
  tree.Write(std::string(kNode) + "has_memory", "0-1");
  tree.Write(std::string(kNode) + "node0/cpulist", "0-3");
  tree.Write(std::string(kNode) + "node1/cpulist", "4-7");
  tree.Write("/proc/sys/kernel/numa_balancing", "1");
  const NumaFacts facts = GatherNuma(tree.files(), {4, 5});
  EXPECT_EQ(facts.nodes, 2);
  EXPECT_THAT(facts.used_nodes, ElementsAre(1));
  EXPECT_TRUE(facts.balancing);
  EXPECT_THAT(GatherNuma(tree.files(), {3, 4}).used_nodes, ElementsAre(0, 1));
}

TEST(NumaTest, ReadsTheMemoryPolicy) {
  if (syscall(SYS_set_mempolicy, MPOL_LOCAL, nullptr, 0UL) != 0) {
    GTEST_SKIP() << "set_mempolicy is forbidden";
  }
  const std::string policy =
      GatherNuma(testing::MachineFiles().files(), {0}).policy;
  ASSERT_EQ(syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0UL), 0);
  EXPECT_EQ(policy, "local");
}

TEST(NumaTest, ARankAcrossNodesIsAWarningUnlessItInterleaves) {
  ExpectFindings(
      JudgeNuma({.nodes = 2, .used_nodes = {0, 1}, .policy = "default"}),
      "warning");
  ExpectFindings(
      JudgeNuma({.nodes = 2, .used_nodes = {0, 1}, .policy = "interleave"}),
      "ok");
  ExpectFindings(JudgeNuma({.nodes = 2, .used_nodes = {1}, .policy = "bind"}),
                 "ok");
  ExpectFindings(
      JudgeNuma({.nodes = 1, .used_nodes = {0}, .policy = "default"}), "ok");
}

TEST(NumaTest, BalancingIsANoteUnlessMemoryIsBound) {
  ExpectFindings(JudgeNuma({.nodes = 2,
                            .used_nodes = {1},
                            .policy = "default",
                            .balancing = true}),
                 "ok note");
  ExpectFindings(
      JudgeNuma(
          {.nodes = 2, .used_nodes = {1}, .policy = "bind", .balancing = true}),
      "ok");
}

TEST(HugePagesTest, ReadsTheKernelsSettings) {
  testing::MachineFiles tree;
  tree.Write("/sys/kernel/mm/transparent_hugepage/enabled",
             "always [madvise] never");
  const std::string pages = "/sys/kernel/mm/hugepages/hugepages-2048kB";
  tree.Write(pages + "/nr_hugepages", "10");
  tree.Write(pages + "/free_hugepages", "4");
  const auto gather = [&](const std::string& name, const std::string& value) {
    return GatherHugePages(tree.files(), base::FakeEnvironment({{name, value}}),
                           {{"libmpg.so.1", "/l/libmpg.so.1"}});
  };
  const HugePageFacts facts =
      gather("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");
  EXPECT_EQ(facts.transparent, "madvise");
  EXPECT_TRUE(facts.malloc_asks);
  EXPECT_EQ(facts.reserved, 10);
  EXPECT_EQ(facts.free, 4);
  EXPECT_EQ(facts.page_kib * 1024, getpagesize());
  EXPECT_TRUE(facts.large_page_library);
  EXPECT_FALSE(gather("GLIBC_TUNABLES", "glibc.malloc.hugetlb=0").malloc_asks);
  const HugePageFacts fujitsu = gather("XOS_MMM_L_HPAGE_TYPE", "none");
  EXPECT_EQ(fujitsu.large_page_type, "none");
  EXPECT_FALSE(fujitsu.malloc_asks);
}

TEST(HugePagesTest, UnusedHugePagesAreANote) {
  ExpectFindings(JudgeHugePages({.transparent = "madvise"}), "note");
  ExpectFindings(
      JudgeHugePages({.transparent = "madvise", .malloc_asks = true}), "ok");
  ExpectFindings(
      JudgeHugePages({.transparent = "always", .reserved = 10, .free = 4}),
      "ok");
  ExpectFindings(JudgeHugePages({.transparent = "never"}), "note");
  ExpectFindings(JudgeHugePages({}), "note");
}

TEST(HugePagesTest, NamesTheSizeOfOrdinaryPages) {
  ExpectFindings(JudgeHugePages({.transparent = "madvise", .page_kib = 64}),
                 "note");
  ExpectFindings(JudgeHugePages({.transparent = "never", .page_kib = 16}),
                 "note");
}

TEST(HugePagesTest, FujitsusLibraryUsesLargePagesByDefault) {
  HugePageFacts facts = {.transparent = "never", .large_page_library = true};
  ExpectFindings(JudgeHugePages(facts), "ok");
  facts.large_page_type = "hugetlbfs";
  ExpectFindings(JudgeHugePages(facts), "ok");
  facts.large_page_type = "none";
  ExpectFindings(JudgeHugePages(facts), "note");
}

TEST(FrequencyTest, ReadsGovernorsAndLimits) {
  testing::MachineFiles tree;
  for (int cpu = 0; cpu < 3; ++cpu) {
    const std::string directory = kCpu + std::to_string(cpu) + "/cpufreq/";
    tree.Write(directory + "scaling_governor",
               cpu == 2 ? "powersave" : "schedutil");
    tree.Write(directory + "scaling_driver", "acpi-cpufreq");
    tree.Write(directory + "scaling_max_freq",
               cpu == 1 ? "1000000" : "3000000");
    tree.Write(directory + "cpuinfo_max_freq", "3000000");
  }
  const FrequencyFacts facts = GatherFrequency(tree.files(), {0, 1});
  EXPECT_THAT(facts.governors, ElementsAre("schedutil"));
  EXPECT_EQ(facts.driver, "acpi-cpufreq");
  EXPECT_DOUBLE_EQ(facts.limit_ghz, 1);
  EXPECT_DOUBLE_EQ(facts.maximum_ghz, 3);
}

TEST(FrequencyTest, PowersaveIsAProblemIfItMeansTheLowestClock) {
  const auto judged = [](const char* driver, const char* governor) {
    return JudgeFrequency({.driver = driver, .governors = {governor}});
  };
  ExpectFindings(judged("acpi-cpufreq", "powersave"), "problem");
  ExpectFindings(judged("intel_pstate", "powersave"), "note");
  ExpectFindings(judged("acpi-cpufreq", "performance"), "ok");
  ExpectFindings(JudgeFrequency({}), "ok");
}

TEST(FrequencyTest, ALimitBelowTheMaximumIsAWarning) {
  ExpectFindings(JudgeFrequency({.driver = "intel_pstate",
                                 .governors = {"performance"},
                                 .limit_ghz = 1.2,
                                 .maximum_ghz = 3}),
                 "ok warning");
}

TEST(LimitsTest, LimitsAreReportedWithRemedies) {
  ExpectFindings(JudgeLimits({}), "ok");
  ExpectFindings(JudgeLimits({.address_space_bytes = int64_t{6} << 30}),
                 "problem");
  ExpectFindings(JudgeLimits({.file_bytes = int64_t{1} << 29,
                              .open_files = 1024,
                              .ranks_on_host = 64}),
                 "warning warning");
}

}  // namespace
}  // namespace hvdlite::doctor
