#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/doctor/checks/finding_matchers.h"
#include "tools/doctor/checks/host_checks.h"
#include "tools/doctor/checks/software_checks.h"

namespace hvdlite::doctor {
namespace {

using ::testing::ElementsAre;

TEST(AllocatorTest, IsTheFirstThatIsLoaded) {
  EXPECT_EQ(AllocatorOf({{"libm.so.6", "/lib/libm.so.6"}}), "glibc");
  EXPECT_EQ(AllocatorOf({{"libjemalloc.so.2", "/l/libjemalloc.so.2"},
                         {"libtcmalloc_minimal.so.4", "/l/x"}}),
            "jemalloc");
  EXPECT_EQ(AllocatorOf({{"libtcmalloc_minimal.so.4", "/l/x"}}), "tcmalloc");
  EXPECT_EQ(AllocatorOf({{"libjemalloc.so.2", ""}}), "glibc");
}

TEST(AllocatorTest, APreloadThatIsMissingIsAProblem) {
  EXPECT_THAT(JudgeAllocator({}, {{"/opt/libjemalloc.so.2", false}}),
              ElementsAre(Says(Verdict::kProblem, "/opt/libjemalloc.so.2",
                               "apt-get install libjemalloc2, then export "
                               "LD_PRELOAD=libjemalloc.so.2"),
                          IsOk("glibc")));
  EXPECT_THAT(JudgeAllocator({}, {{"libx.so", false}}),
              ElementsAre(Says(Verdict::kProblem, "libx.so", "ldconfig -p"),
                          IsOk("glibc")));
  EXPECT_THAT(JudgeAllocator({{"libtcmalloc.so.4", "/l/x"}},
                             {{"libtcmalloc.so.4", true}}),
              ElementsAre(IsOk("tcmalloc")));
}

TEST(AllocatorTest, EntriesOfLdPreloadAreLookedUpInThisProcess) {
  const std::vector<Preload> preloads =
      PreloadsOf("libc.so.6:/nonexistent/libjemalloc.so.2 libnone.so");
  ASSERT_EQ(preloads.size(), 3U);
  EXPECT_TRUE(preloads[0].loaded);
  EXPECT_EQ(preloads[1].entry, "/nonexistent/libjemalloc.so.2");
  EXPECT_FALSE(preloads[1].loaded);
  EXPECT_FALSE(preloads[2].loaded);
}

TEST(MemoryReturnTest, MemoryThatIsFaultedInAgainIsANote) {
  const auto judged = [](const char* allocator, int64_t second) {
    return JudgeMemoryReturn({.allocator = allocator,
                              .bytes = 32 << 20,
                              .first_faults = 8192,
                              .second_faults = second});
  };
  EXPECT_THAT(judged("glibc", 8192),
              Says(Verdict::kNote, "32 MiB", "MALLOC_TRIM_THRESHOLD_"));
  EXPECT_THAT(judged("jemalloc", 8000),
              Says(Verdict::kNote, "jemalloc", "MALLOC_CONF="));
  EXPECT_THAT(judged("glibc", 100), IsOk("still had most"));
  EXPECT_THAT(JudgeMemoryReturn({.allocator = "glibc", .bytes = 1 << 20}),
              IsOk("still had most"));
}

TEST(MemoryBandwidthTest, ARankBelowTheOthersIsNamed) {
  const std::vector<Finding> findings =
      JudgeMemoryBandwidth(std::vector<double>{10, 10, 5}, {"a", "a", "b"});
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_THAT(findings[0],
              Says(Verdict::kWarning, "rank 2 on b copies 5 GB/s", "numa"));
  EXPECT_THAT(findings[0].ranks, ElementsAre(2));
  EXPECT_THAT(findings[1], IsOk("10 GB/s per rank, 5 (b) to 20 per host"));
}

TEST(MemoryBandwidthTest, OneHostHasASum) {
  EXPECT_THAT(JudgeMemoryBandwidth(std::vector<double>{10, 12}, {"a", "a"}),
              ElementsAre(IsOk("11 GB/s per rank, 22 in all")));
}

}  // namespace
}  // namespace hvdlite::doctor
