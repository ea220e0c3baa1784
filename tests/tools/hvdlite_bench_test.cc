#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <stdexcept>

#include "tools/hvdlite_bench/measurements.h"
#include "tools/hvdlite_bench/resnet50_gradients.h"

namespace hvdlite::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Measurements ThreeRounds() {
  return {2,
          3,
          1,
          "Some MPI",
          {300, 100, 200},
          {{"small", "one tensor", 1, 4, 20, {2, 8, 6}, {1, 2, 4}}}};
}

TEST(Resnet50GradientsTest, AreThe161OfThePublishedNetwork) {
  const std::vector<int64_t> elements = Resnet50GradientElements();
  EXPECT_EQ(elements.size(), 161u);
  EXPECT_EQ(std::accumulate(elements.begin(), elements.end(), int64_t{0}),
            25557032);
}

TEST(Resnet50GradientsTest, ComeFromTheClassifierToTheFirstConvolution) {
  const std::vector<int64_t> elements = Resnet50GradientElements();
  EXPECT_EQ(elements[0], 1000);
  EXPECT_EQ(elements[1], 2048 * 1000);
  EXPECT_EQ(elements[4], 512 * 2048);
  EXPECT_EQ(elements.back(), 3 * 64 * 7 * 7);
}

TEST(SpreadTest, MedianOfAnEvenNumberIsTheMeanOfTheMiddleTwo) {
  const Spread spread = SpreadOf({4, 1, 3, 10});
  EXPECT_EQ(spread.median, 3.5);
  EXPECT_EQ(spread.min, 1);
  EXPECT_EQ(spread.max, 10);
}

TEST(SpreadTest, NoSamplesAreAnError) {
  EXPECT_THROW(SpreadOf({}), std::invalid_argument);
}

TEST(MeasurementsTest, RatiosCompareSamplesOfTheSameRound) {
  EXPECT_THAT(ThreeRounds().comparisons[0].Ratios(), ElementsAre(2, 4, 1.5));
}

TEST(MeasurementsTest, TableTellsMediansAndRatios) {
  std::ostringstream out;
  PrintTable(ThreeRounds(), out);
  EXPECT_THAT(out.str(), HasSubstr("2 ranks, 3 interleaved rounds"));
  EXPECT_THAT(out.str(), HasSubstr("MPI_THREAD_MULTIPLE"));
  EXPECT_THAT(out.str(), HasSubstr("median       200.00"));
  EXPECT_THAT(out.str(), HasSubstr("ratio of medians                        "
                                   "3.00"));
}

TEST(MeasurementsTest, JsonHoldsSamplesAndRatios) {
  const std::string path = ::testing::TempDir() + "/hvdlite_bench_test.json";
  WriteJson(ThreeRounds(), path);
  std::ifstream file(path);
  const nlohmann::json json = nlohmann::json::parse(file);
  std::remove(path.c_str());
  EXPECT_EQ(json["workloads"][0]["ratio_of_medians"], 3.0);
  EXPECT_EQ(json["workloads"][0]["ratio_by_round"]["median"], 2.0);
  EXPECT_EQ(json["workloads"][0]["samples"]["mpi_us"][2], 4.0);
}

TEST(MeasurementsTest, UnwritableFileIsAnErrorThatNamesIt) {
  try {
    WriteJson(ThreeRounds(), "/no-such-folder/result.json");
    FAIL() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("/no-such-folder/result.json"));
  }
}

}  // namespace
}  // namespace hvdlite::tools
