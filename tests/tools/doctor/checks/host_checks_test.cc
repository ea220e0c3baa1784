#include "tools/doctor/checks/host_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/testing/fakes/file_tree.h"
#include "tests/tools/doctor/checks/finding_matchers.h"

namespace hvdlite::doctor {
namespace {

using ::testing::ElementsAre;

constexpr char kCpu[] = "/sys/devices/system/cpu/cpu";
constexpr char kNode[] = "/sys/devices/system/node/";

TEST(SmtTest, CountsCoresByTheirThreads) {
  FileTree tree;
  for (int cpu = 0; cpu < 4; ++cpu) {
    tree.Write(kCpu + std::to_string(cpu) + "/topology/thread_siblings_list",
               cpu % 2 == 0 ? "0,2" : "1,3");
  }
  const SmtFacts facts =
      GatherSmt(tree.files(), {{.host = "a", .cpus = {0, 1, 2}, .threads = 3}});
  EXPECT_EQ(facts.ranks, 1);
  EXPECT_EQ(facts.cpus, 3);
  EXPECT_EQ(facts.cores, 2);
  EXPECT_EQ(facts.threads, 3);
  EXPECT_EQ(
      GatherSmt(FileTree().files(), {{.host = "a", .cpus = {0, 1}}}).cores, 2);
}

// A rank on four CPUs, with a thread on each of these cores.
ThreadFacts BoundTo(std::vector<std::set<int>> cores_of_thread) {
  return {.host = "a",
          .cpus = {0, 1, 2, 3},
          .threads = static_cast<int>(cores_of_thread.size()),
          .cores_of_thread = std::move(cores_of_thread)};
}

TEST(SmtTest, CoresAreTheThreadsOwnIfNoOtherIsBoundToThem) {
  const support::SystemFiles files = FileTree().files();
  EXPECT_TRUE(GatherSmt(files, {BoundTo({{0}, {1}})}).one_per_core);
  EXPECT_FALSE(GatherSmt(files, {BoundTo({{0}, {0}})}).one_per_core);
  EXPECT_FALSE(GatherSmt(files, {BoundTo({{0, 1}})}).one_per_core);
  EXPECT_FALSE(GatherSmt(files, {{.host = "a", .cpus = {0}}}).one_per_core);
}

TEST(SmtTest, RanksThatShareCpusAddUp) {
  const support::SystemFiles files = FileTree().files();
  const SmtFacts facts =
      GatherSmt(files, {BoundTo({{0}}), BoundTo({{1}, {2}})});
  EXPECT_EQ(facts.ranks, 2);
  EXPECT_EQ(facts.threads, 3);
  EXPECT_EQ(facts.cpus, 4);
  EXPECT_TRUE(facts.one_per_core);
  EXPECT_FALSE(GatherSmt(files, {BoundTo({{0}}), BoundTo({{0}})}).one_per_core);
}

TEST(SmtTest, TwoThreadsOnACoreAreAWarning) {
  EXPECT_THAT(JudgeSmt({.cpus = 4, .cores = 2, .threads = 4}),
              Says(Verdict::kWarning, "4 CPUs on 2 cores for 4 threads",
                   "export OMP_NUM_THREADS=2"));
  EXPECT_THAT(JudgeSmt({.cpus = 4, .cores = 2, .threads = 2}),
              Says(Verdict::kNote, "may meet", "export OMP_PLACES=cores"));
  EXPECT_THAT(JudgeSmt({.cpus = 2, .cores = 2, .threads = 2}), IsOk("no SMT"));
}

TEST(SmtTest, RanksThatShareCpusAreToldToTakeCoresOfTheirOwnFirst) {
  EXPECT_THAT(
      JudgeSmt({.ranks = 2, .cpus = 16, .cores = 8, .threads = 6}),
      Says(Verdict::kNote, "6 threads of 2 ranks: threads may meet",
           "give every rank cores of its own: hvdliterun, or mpirun "
           "--map-by slot:PE=3 --bind-to core; then export OMP_PLACES="));
  EXPECT_THAT(JudgeSmt({.ranks = 2, .cpus = 16, .cores = 8, .threads = 16}),
              Says(Verdict::kWarning, "16 threads of 2 ranks",
                   "slot:PE=4 --bind-to core; then export OMP_NUM_THREADS=4 "));
  EXPECT_THAT(JudgeSmt({.ranks = 4, .cpus = 4, .cores = 2, .threads = 4}),
              Says(Verdict::kWarning, "4 ranks", "start 2 ranks here"));
}

TEST(SmtTest, ThreadsThatAreBoundToCoresOfTheirOwnAreOk) {
  EXPECT_THAT(
      JudgeSmt({.cpus = 4, .cores = 2, .threads = 2, .one_per_core = true}),
      IsOk("OMP_PLACES"));
  EXPECT_THAT(
      JudgeSmt({.cpus = 4, .cores = 2, .threads = 3, .one_per_core = true}),
      HasVerdict(Verdict::kWarning));
}

TEST(NumaTest, FindsTheNodesOfTheCpus) {
  FileTree tree;
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

TEST(NumaTest, TellsTheKernelsMemoryPolicy) {
  if (syscall(SYS_set_mempolicy, MPOL_LOCAL, nullptr, 0UL) != 0) {
    GTEST_SKIP() << "set_mempolicy is forbidden";
  }
  const std::string policy = GatherNuma(FileTree().files(), {0}).policy;
  ASSERT_EQ(syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0UL), 0);
  EXPECT_EQ(policy, "local");
}

TEST(NumaTest, ARankAcrossNodesIsAWarningUnlessItInterleaves) {
  EXPECT_THAT(
      JudgeNuma({.nodes = 2, .used_nodes = {0, 1}, .policy = "default"}),
      ElementsAre(Says(Verdict::kWarning, "nodes 0, 1 of 2", "--map numa")));
  EXPECT_THAT(
      JudgeNuma({.nodes = 2, .used_nodes = {0, 1}, .policy = "interleave"}),
      ElementsAre(IsOk("interleave")));
  EXPECT_THAT(JudgeNuma({.nodes = 2, .used_nodes = {1}, .policy = "bind"}),
              ElementsAre(IsOk("node 1 of 2")));
  EXPECT_THAT(JudgeNuma({.nodes = 1, .used_nodes = {0}, .policy = "default"}),
              ElementsAre(IsOk("one NUMA node")));
}

TEST(NumaTest, BalancingIsANoteWhereMemoryIsNotBound) {
  EXPECT_THAT(JudgeNuma({.nodes = 2,
                         .used_nodes = {1},
                         .policy = "default",
                         .balancing = true}),
              ElementsAre(HasVerdict(Verdict::kOk),
                          Says(Verdict::kNote, "numa_balancing",
                               "sysctl -w kernel.numa_balancing=0")));
  EXPECT_THAT(
      JudgeNuma(
          {.nodes = 2, .used_nodes = {1}, .policy = "bind", .balancing = true}),
      ElementsAre(HasVerdict(Verdict::kOk)));
}

TEST(HugePagesTest, ReadsTheKernelsSettings) {
  FileTree tree;
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

TEST(HugePagesTest, PagesThatNobodyAsksForAreANote) {
  EXPECT_THAT(
      JudgeHugePages({.transparent = "madvise"}),
      Says(Verdict::kNote, "madvise", "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"));
  EXPECT_THAT(JudgeHugePages({.transparent = "madvise", .malloc_asks = true}),
              IsOk("malloc asks"));
  EXPECT_THAT(
      JudgeHugePages({.transparent = "always", .reserved = 10, .free = 4}),
      IsOk("reserved: 10, 4 of them free"));
  EXPECT_THAT(JudgeHugePages({.transparent = "never"}),
              Says(Verdict::kNote, "never", "echo madvise"));
  EXPECT_THAT(JudgeHugePages({}), Says(Verdict::kNote, "not there", ""));
}

TEST(HugePagesTest, NamesTheSizeOfOrdinaryPages) {
  EXPECT_THAT(JudgeHugePages({.transparent = "madvise", .page_kib = 64}),
              Says(Verdict::kNote, "pages of 64 KiB", ""));
  EXPECT_THAT(JudgeHugePages({.transparent = "never", .page_kib = 16}),
              Says(Verdict::kNote, "pages of 16 KiB", ""));
}

TEST(HugePagesTest, FujitsusLibraryTakesLargePagesByItself) {
  HugePageFacts facts = {.transparent = "never", .large_page_library = true};
  EXPECT_THAT(JudgeHugePages(facts), IsOk("its default type"));
  facts.large_page_type = "hugetlbfs";
  EXPECT_THAT(JudgeHugePages(facts), IsOk("XOS_MMM_L_HPAGE_TYPE=hugetlbfs"));
  facts.large_page_type = "none";
  EXPECT_THAT(JudgeHugePages(facts),
              Says(Verdict::kNote, "off", "unset XOS_MMM_L_HPAGE_TYPE"));
}

TEST(FrequencyTest, ReadsGovernorsAndLimits) {
  FileTree tree;
  for (int cpu = 0; cpu < 3; ++cpu) {
    const std::string folder = kCpu + std::to_string(cpu) + "/cpufreq/";
    tree.Write(folder + "scaling_governor",
               cpu == 2 ? "powersave" : "schedutil");
    tree.Write(folder + "scaling_driver", "acpi-cpufreq");
    tree.Write(folder + "scaling_max_freq", cpu == 1 ? "1000000" : "3000000");
    tree.Write(folder + "cpuinfo_max_freq", "3000000");
  }
  const FrequencyFacts facts = GatherFrequency(tree.files(), {0, 1});
  EXPECT_THAT(facts.governors, ElementsAre("schedutil"));
  EXPECT_EQ(facts.driver, "acpi-cpufreq");
  EXPECT_DOUBLE_EQ(facts.limit_ghz, 1);
  EXPECT_DOUBLE_EQ(facts.maximum_ghz, 3);
}

TEST(FrequencyTest, PowersaveIsAProblemWhereItMeansTheLowestClock) {
  const auto judged = [](const char* driver, const char* governor) {
    return JudgeFrequency({.driver = driver, .governors = {governor}});
  };
  EXPECT_THAT(judged("acpi-cpufreq", "powersave"),
              ElementsAre(Says(Verdict::kProblem, "powersave",
                               "cpupower frequency-set -g performance")));
  EXPECT_THAT(judged("intel_pstate", "powersave"),
              ElementsAre(HasVerdict(Verdict::kNote)));
  EXPECT_THAT(judged("acpi-cpufreq", "performance"),
              ElementsAre(IsOk("performance")));
  EXPECT_THAT(JudgeFrequency({}), ElementsAre(IsOk("does not choose")));
}

TEST(FrequencyTest, ALimitBelowTheMaximumIsAWarning) {
  EXPECT_THAT(JudgeFrequency({.driver = "intel_pstate",
                              .governors = {"performance"},
                              .limit_ghz = 1.2,
                              .maximum_ghz = 3}),
              ElementsAre(HasVerdict(Verdict::kOk),
                          Says(Verdict::kWarning, "limited to 1.20 of 3.00 GHz",
                               "--max 3000MHz")));
}

TEST(LimitsTest, EachLimitThatHurtsIsToldOfWithItsRemedy) {
  EXPECT_THAT(JudgeLimits({}), ElementsAre(IsOk("enough open files")));
  EXPECT_THAT(
      JudgeLimits({.address_space_bytes = int64_t{6} << 30}),
      ElementsAre(Says(Verdict::kProblem, "6.0 GiB", "ulimit -v unlimited")));
  EXPECT_THAT(
      JudgeLimits({.file_bytes = int64_t{1} << 29,
                   .open_files = 1024,
                   .ranks_on_host = 64}),
      ElementsAre(Says(Verdict::kWarning, "0.5 GiB", "ulimit -f unlimited"),
                  Says(Verdict::kWarning, "1024 files; with 64 ranks",
                       "ulimit -n 5120")));
}

}  // namespace
}  // namespace hvdlite::doctor
