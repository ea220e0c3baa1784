#include "tools/support/processor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvdlite::base {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(CpuFlagsTest, AreThoseOfTheFirstProcessorOfX86OrArm) {
  EXPECT_THAT(CpuFlags("model : 1\nflags\t\t: fpu avx2\nflags : x\n"),
              ElementsAre("avx2", "fpu"));
  EXPECT_THAT(CpuFlags("Features\t: fp asimd sve\n"),
              ElementsAre("asimd", "fp", "sve"));
  EXPECT_THAT(CpuFlags(""), IsEmpty());
}

TEST(OpenBlasCoreTest, OldKernelsAreReplacedAsFarAsTheProcessorGoes) {
  const std::set<std::string> avx512 = {"avx512f", "avx512bw", "avx512dq",
                                        "avx512vl"};
  EXPECT_EQ(BetterOpenBlasCore("Prescott", avx512), "SkylakeX");
  // Knights Landing has AVX-512, but not all of it.
  for (const std::string& missing : avx512) {
    std::set<std::string> some = avx512;
    some.erase(missing);
    some.insert({"avx2", "fma"});
    EXPECT_EQ(BetterOpenBlasCore("Prescott", some), "Haswell") << missing;
  }
  EXPECT_EQ(BetterOpenBlasCore("Nehalem", {"avx2", "fma"}), "Haswell");
  EXPECT_EQ(BetterOpenBlasCore("Nehalem", {"avx"}), "");
  EXPECT_EQ(BetterOpenBlasCore("SkylakeX", avx512), "");
  EXPECT_EQ(BetterOpenBlasCore("", avx512), "");
  EXPECT_EQ(BetterOpenBlasCore("armv8", {"asimd", "sve"}), "");
}

}  // namespace
}  // namespace hvdlite::base
