#include "support/processor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/input_error.h"

namespace hvdlite::support {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

TEST(CpuFlagsTest, FlagsOfTheFirstProcessorAreRead) {
  EXPECT_THAT(CpuFlags("model : 1\nflags\t\t: fpu avx2\nflags : x\n"),
              ElementsAre("avx2", "fpu"));
  EXPECT_THAT(CpuFlags("Features\t: fp asimd sve\n"),
              ElementsAre("asimd", "fp", "sve"));
  EXPECT_THAT(CpuFlags(""), IsEmpty());
}

TEST(Bfloat16Test, MissingInstructionsAreNamed) {
  EXPECT_EQ(MissingBfloat16Instructions({"sse2", "avx2", "avx512f"}),
            "avx512_bf16 or amx_bf16");
  EXPECT_EQ(MissingBfloat16Instructions({"asimd", "sve"}), "bf16 or svebf16");
  EXPECT_EQ(MissingBfloat16Instructions({}), "");
  EXPECT_EQ(MissingBfloat16Instructions({"sse2", "avx512_bf16"}), "");
  EXPECT_EQ(MissingBfloat16Instructions({"asimd", "bf16"}), "");
  EXPECT_EQ(Bfloat16Instructions({"sse2", "avx512_bf16", "amx_bf16"}),
            "avx512_bf16, amx_bf16");
  EXPECT_EQ(Bfloat16Instructions({"sse2"}), "");
}

TEST(OpenBlasCoreTest, OldKernelsAreReplacedByTheBestThatTheProcessorSupports) {
  const std::set<std::string> avx512 = {"avx512f", "avx512bw", "avx512dq",
                                        "avx512vl"};
  EXPECT_EQ(BetterOpenBlasCore("Prescott", avx512), "SkylakeX");
  // Knights Landing has only parts of AVX-512.
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

TEST(CpuListTest, RoundTripsInLinuxFormat) {
  EXPECT_EQ(FormatCpuList({3, 0, 1, 2, 8, 11, 10}), "0-3,8,10-11");
  EXPECT_EQ(FormatCpuList({}), "");
  EXPECT_THAT(*ParseCpuList(" 0-2,8\n"), ElementsAre(0, 1, 2, 8));
  EXPECT_THAT(*ParseCpuList(""), IsEmpty());
  for (const char* text : {"a", "2-1", "1-2-3", "-1"}) {
    EXPECT_FALSE(ParseCpuList(text).ok()) << text;
  }
}

TEST(CpuListTest, SomeCpusAreAllowed) {
  EXPECT_THAT(AllowedCpus(), ::testing::Not(IsEmpty()));
}

TEST(NumaPolicyTest, NamesAreTheSameAsInNumactl) {
  EXPECT_EQ(NumaPolicyName({.mode = MPOL_DEFAULT}), "default");
  EXPECT_EQ(NumaPolicyName({.mode = MPOL_LOCAL}), "local");
  EXPECT_EQ(NumaPolicyName({.mode = MPOL_BIND, .nodes = {0}}), "bind");
  EXPECT_EQ(NumaPolicyName({.mode = MPOL_INTERLEAVE, .nodes = {0, 1}}),
            "interleave");
  EXPECT_EQ(NumaPolicyName({.mode = 9}), "number 9");
}

TEST(NumaPolicyTest, PreferredWithoutNodesIsLocal) {
  EXPECT_EQ(NumaPolicyName({.mode = MPOL_PREFERRED}), "local");
  EXPECT_EQ(NumaPolicyName({.mode = MPOL_PREFERRED, .nodes = {1}}),
            "preferred");
}

TEST(NumaPolicyTest, IsReadFromTheKernel) {
  const unsigned long first_node = 1;
  if (syscall(SYS_set_mempolicy, MPOL_BIND, &first_node, 64UL) != 0) {
    GTEST_SKIP() << "set_mempolicy is forbidden";
  }
  const absl::StatusOr<NumaPolicy> bound = ThisThreadsNumaPolicy();
  ASSERT_EQ(syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0UL), 0);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(bound->mode, MPOL_BIND);
  EXPECT_THAT(bound->nodes, ::testing::ElementsAre(0));
  EXPECT_EQ(ThisThreadsNumaPolicy()->mode, MPOL_DEFAULT);
}

TEST(CpuSharesTest, NeighboursStayTogether) {
  EXPECT_THAT(DivideCpus({0, 1, 4, 5}, 2),
              ElementsAre(ElementsAre(0, 1), ElementsAre(4, 5)));
}

TEST(CpuSharesTest, FirstSharesGetTheRemainder) {
  EXPECT_THAT(
      DivideCpus({0, 1, 2, 3, 4}, 3),
      ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4)));
}

TEST(CpuSharesTest, MoreSharesThanCpusIsAnErrorThatNamesBoth) {
  EXPECT_THAT(
      [] {
        DivideCpus({0, 1}, 3);
      },
      ThrowsMessage<InputError>(
          AllOf(HasSubstr("--instances is 3"), HasSubstr("2 CPUs"))));
}

TEST(CpuSharesTest, BoundThreadMayUseOnlyTheseCpus) {
  const std::vector<int> all = AllowedCpus();
  BindThread({all.back()});
  EXPECT_THAT(AllowedCpus(), ElementsAre(all.back()));
  BindThread(all);
  EXPECT_EQ(AllowedCpus(), all);
}

}  // namespace
}  // namespace hvdlite::support
