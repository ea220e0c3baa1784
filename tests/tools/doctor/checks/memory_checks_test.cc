#include <gtest/gtest.h>

#include "tests/tools/doctor/checks/expect_findings.h"
#include "tools/doctor/checks/host_checks.h"
#include "tools/doctor/checks/software_checks.h"

namespace hvdlite::doctor {
namespace {

TEST(AllocatorTest, FirstLoadedAllocatorCounts) {
  EXPECT_EQ(AllocatorOf({{"libm.so.6", "/lib/libm.so.6"}}), "glibc");
  EXPECT_EQ(AllocatorOf({{"libjemalloc.so.2", "/l/libjemalloc.so.2"},
                         {"libtcmalloc_minimal.so.4", "/l/x"}}),
            "jemalloc");
  EXPECT_EQ(AllocatorOf({{"libtcmalloc_minimal.so.4", "/l/x"}}), "tcmalloc");
  EXPECT_EQ(AllocatorOf({{"libjemalloc.so.2", ""}}), "glibc");
}

TEST(AllocatorTest, MissingPreloadIsAProblem) {
  ExpectFindings(JudgeAllocator({}, {{"/opt/libjemalloc.so.2", false}}),
                 "problem ok");
  ExpectFindings(JudgeAllocator({}, {{"libx.so", false}}), "problem ok");
  ExpectFindings(JudgeAllocator({{"libtcmalloc.so.4", "/l/x"}},
                                {{"libtcmalloc.so.4", true}}),
                 "ok");
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

TEST(MemoryReturnTest, ReturnedMemoryIsANote) {
  const auto judged = [](const char* allocator, int64_t second) {
    return JudgeMemoryReturn({.allocator = allocator,
                              .bytes = 32 << 20,
                              .first_faults = 8192,
                              .second_faults = second});
  };
  ExpectFindings(judged("glibc", 8192), "note");
  ExpectFindings(judged("jemalloc", 8000), "note");
  ExpectFindings(judged("glibc", 100), "ok");
  ExpectFindings(JudgeMemoryReturn({.allocator = "glibc", .bytes = 1 << 20}),
                 "ok");
}

TEST(MemoryBandwidthTest, ARankBelowTheOthersIsNamed) {
  ExpectFindings(
      JudgeMemoryBandwidth(std::vector<double>{10, 10, 5}, {"a", "a", "b"}),
      "warning ok");
}

TEST(MemoryBandwidthTest, BandwidthsOfOneHostAreSummed) {
  ExpectFindings(JudgeMemoryBandwidth(std::vector<double>{10, 12}, {"a", "a"}),
                 "ok");
}

}  // namespace
}  // namespace hvdlite::doctor
