// Random programs of operations, in process, with a coordinator for every rank.
#include "tests/testing/conformance/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/conformance/program_coverage.h"
#include "tests/testing/conformance/program_runner.h"
#include "tests/testing/unless_sanitized.h"
#include "tests/testing/worlds/coordinated_world.h"

namespace hvdlite::testing {
namespace {

constexpr int kAllPrograms = 50;  // for each size
constexpr int kProgramsOfEachSize = UnlessSanitized(kAllPrograms, 10);

class ProgramTest : public ::testing::TestWithParam<int> {};

// A failure prints its seed; to repeat it, make it the first seed.
constexpr uint64_t kFirstSeed = 1;

TEST_P(ProgramTest, RandomProgramsGiveTheExpectedResults) {
  const int size = GetParam();
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + kProgramsOfEachSize;
       ++seed) {
    const Program program = ProgramGenerator(seed, size).Generate();
    CoordinatedWorld world(size, program.options);
    world.OnEveryRank(
        [&](int rank) { ProgramRunner(program, world[rank], rank).Run(); });
    ASSERT_FALSE(HasFailure()) << "seed " << seed << ", " << size << " ranks";
  }
}

constexpr int kSizes[] = {1, 2, 3, 4, 5, 8};

INSTANTIATE_TEST_SUITE_P(Ranks, ProgramTest, ::testing::ValuesIn(kSizes));

TEST(ProgramsTest, HaveEveryTypeOpCompressionAndFault) {
  ProgramCoverage coverage;
  for (const int size : kSizes) {
    for (int i = 0; i < kAllPrograms; ++i) {
      coverage.Add(ProgramGenerator(kFirstSeed + i, size).Generate());
    }
  }
  EXPECT_THAT(coverage.Missing(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace hvdlite::testing
