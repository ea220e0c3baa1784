#include "base/malloc_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace hvdlite::base {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Reason(std::vector<std::pair<std::string, std::string>> variables,
                   bool is_glibc = true) {
  return WhyMallocIsKept("tune", is_glibc,
                         FakeEnvironment(std::move(variables)));
}

TEST(MallocSettingsTest, MallocIsTunedByDefault) {
  EXPECT_THAT(Reason({}), IsEmpty());
  // This tunable does not concern freed memory.
  EXPECT_THAT(Reason({{"MALLOC_ARENA_MAX", "2"}}), IsEmpty());
  EXPECT_THAT(Reason({{"GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"}}),
              IsEmpty());
}

TEST(MallocSettingsTest, KeepSettingLeavesMallocUnchanged) {
  EXPECT_THAT(WhyMallocIsKept("keep", true, FakeEnvironment({})),
              HasSubstr("HVDLITE_MALLOC=keep"));
}

TEST(MallocSettingsTest, OtherMallocStaysUnchanged) {
  EXPECT_THAT(Reason({}, /*is_glibc=*/false), HasSubstr("not glibc's"));
}

TEST(MallocSettingsTest, VariablesOfMallocPreventTuning) {
  for (const char* name : {"MALLOC_MMAP_MAX_", "MALLOC_MMAP_THRESHOLD_",
                           "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_"}) {
    EXPECT_THAT(Reason({{name, "1000000"}}), HasSubstr(name));
  }
  for (const char* name : {"mmap_max", "mmap_threshold", "trim_threshold",
                           "top_pad"}) {
    EXPECT_THAT(Reason({{"GLIBC_TUNABLES",
                         std::string("glibc.malloc.hugetlb=1:glibc.malloc.") +
                             name + "=7"}}),
                HasSubstr(name));
  }
}

// Page faults while a large block is allocated, written and freed.
long FaultsOfALargeBlock() {
  rusage before = {};
  rusage after = {};
  getrusage(RUSAGE_SELF, &before);
  constexpr size_t kBytes = size_t{64} << 20;
  auto* const block = static_cast<volatile char*>(std::malloc(kBytes));
  for (size_t i = 0; i < kBytes; i += 4096) block[i] = 1;
  std::free(const_cast<char*>(block));
  getrusage(RUSAGE_SELF, &after);
  return after.ru_minflt - before.ru_minflt;
}

TEST(MallocSettingsTest, TunedMallocFaultsInALargeBlockOnlyOnce) {
  const std::string reason =
      WhyMallocIsKept("tune", MallocIsGlibc(), ProcessEnvironment());
  if (!reason.empty()) GTEST_SKIP() << "malloc is the user's: " << reason;
  EXPECT_THAT(TuneMalloc("keep", FakeEnvironment({})), HasSubstr("unchanged"));
  FaultsOfALargeBlock();
  EXPECT_GT(FaultsOfALargeBlock(), 30);  // huge pages: 2 MiB each
  EXPECT_THAT(TuneMalloc("tune", FakeEnvironment({})),
              HasSubstr("keeps freed memory"));
  FaultsOfALargeBlock();
  EXPECT_LT(FaultsOfALargeBlock(), 16);
}

}  // namespace
}  // namespace hvdlite::base
