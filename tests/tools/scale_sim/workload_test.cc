// Tests gradients from files and the time of buckets.
#include "tools/scale_sim/workload.h"

#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/scale_sim/simulation.h"

namespace hvdlite::scale_sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(GradientsTest, FileHasElementsAndWorkPerLine) {
  const auto workload = ParseGradients("# a comment\n10 1\n\n20 3 # another\n");
  ASSERT_TRUE(workload.ok()) << workload.status();
  EXPECT_EQ(workload->requests[0].size_bytes(), 40);
  EXPECT_EQ(workload->requests[1].size_bytes(), 80);
  EXPECT_NE(workload->requests[0].name, workload->requests[1].name);
  EXPECT_THAT(workload->ready_fraction, ElementsAre(0.25, 1));
  EXPECT_THAT(ParseGradients("5\n5\n")->ready_fraction, ElementsAre(0.5, 1));
}

TEST(GradientsTest, BadLineIsAnErrorThatNamesIt) {
  for (const char* text :
       {"10\nx\n", "10\n0\n", "10\n5 -1\n", "10\n5 1 2\n", "10\n1.5\n",
        "10\n5 nan\n", "10\n5 inf\n", "10\n5 1e999\n", "10\n5 1e-999\n",
        "10\n9223372036854775807\n", "10\n2305843009213693952\n",
        "10\n99999999999999999999\n", "999999999999\n2\n",
        "10 1e300\n5 1e300\n"}) {
    const auto workload = ParseGradients(text);
    ASSERT_FALSE(workload.ok()) << text;
    EXPECT_THAT(workload.status().message(), HasSubstr("line 2"));
  }
  EXPECT_FALSE(ParseGradients("# nothing\n").ok());
}

TEST(GradientsTest, FileThatCannotBeReadIsNamed) {
  EXPECT_THAT(ReadGradients("/nonexistent").status().message(),
              HasSubstr("/nonexistent: cannot be read"));
  // A directory can be opened but not read.
  EXPECT_THAT(ReadGradients("/").status().message(),
              HasSubstr("/: cannot be read"));
}

TEST(CostModelTest, BucketsTakeTimePerPieceAndPerByte) {
  CostModel cost;
  cost.bucket_us = 5;
  EXPECT_EQ(cost.BucketNanos(1000), 5000);
  cost.bucket_ns_per_byte = 2;
  EXPECT_EQ(cost.BucketNanos(1000), 5000 + 2000);
  cost.chunk_bytes = 400;
  EXPECT_EQ(cost.BucketNanos(1000), 3 * 5000 + 2000);
  EXPECT_EQ(cost.BucketNanos(800), 2 * 5000 + 1600);
  EXPECT_EQ(cost.BucketNanos(0), 5000);
}

TEST(SimulationTest, BucketsTakeTheTimeOfTheirBytes) {
  SimulationOptions options;
  options.workload = *ParseGradients("1000000\n1000000\n");
  options.cost.bucket_ns_per_byte = 1;
  const auto result = Simulate(options);
  ASSERT_TRUE(result.ok()) << result.status();
  const auto steps = static_cast<double>(options.steps);
  EXPECT_NEAR(std::accumulate(result->buckets_ms.begin(),
                              result->buckets_ms.end(), 0.0) /
                  steps,
              8, 1e-9);
  EXPECT_NEAR(std::accumulate(result->computation_ms.begin(),
                              result->computation_ms.end(), 0.0) /
                  steps,
              150, 1e-9);
}

}  // namespace
}  // namespace hvdlite::scale_sim
