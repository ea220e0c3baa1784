// The parts of the model of training: gradients, allreduce, starvation, jitter
// and epochs, each against values computed by hand.
#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/gradient_sizes.h"
#include "tools/scale_sim/allreduce_cost.h"
#include "tools/scale_sim/epoch_table.h"
#include "tools/scale_sim/horovod.h"
#include "tools/scale_sim/network.h"
#include "tools/scale_sim/prediction.h"
#include "tools/scale_sim/workload.h"

namespace hvdlite::scale_sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// ---- Gradients.

TEST(GradientSetTest, Resnet50ForCifar10HasTenClasses) {
  const GradientSet set = Resnet50GradientSet(10);
  ASSERT_THAT(set.bytes, SizeIs(161));
  EXPECT_EQ(set.total_bytes(), 4 * 23'528'522);
  EXPECT_EQ(set.bytes[0], 4 * 10);
  EXPECT_EQ(set.bytes[1], 4 * 2048 * 10);
  EXPECT_EQ(Resnet50GradientSet(1000).total_bytes(), 4 * 25'557'032);
}

TEST(GradientSetTest, BackwardSpendsItsTimeWhereTheMultiplyAddsAre) {
  double multiply_adds = 0;
  for (const auto& gradient : support::Resnet50Gradients(1000)) {
    multiply_adds += gradient.multiply_adds;
  }
  // 4.1e9 with stride in the 3x3 convolution.
  EXPECT_NEAR(multiply_adds, 4.1e9, 0.05e9);
  const GradientSet set = Resnet50GradientSet(10);
  EXPECT_LT(set.ready_fraction[1], 1e-4);  // the classifier's weight
  EXPECT_EQ(set.ready_fraction.back(), 1);
  for (size_t i = 1; i < set.ready_fraction.size(); ++i) {
    EXPECT_GE(set.ready_fraction[i], set.ready_fraction[i - 1]);
  }
  // Half of the bytes, but a fifth of the work, are in the last three blocks.
  EXPECT_NEAR(set.ready_fraction[2 + 3 * 10 - 1], 0.2, 0.03);
}

TEST(GradientSetTest, FileHasElementsAndWorkPerLine) {
  const auto set = ParseGradientSet("# a comment\n10 1\n\n20 3 # another\n");
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_THAT(set->bytes, ElementsAre(40, 80));
  EXPECT_THAT(set->ready_fraction, ElementsAre(0.25, 1));
  EXPECT_THAT(ParseGradientSet("5\n5\n")->ready_fraction, ElementsAre(0.5, 1));
}

TEST(GradientSetTest, BadLineIsAnErrorThatNamesIt) {
  for (const char* text :
       {"10\nx\n", "10\n0\n", "10\n5 -1\n", "10\n5 1 2\n", "10\n1.5\n",
        "10\n5 nan\n", "10\n5 inf\n", "10\n5 1e999\n", "10\n5 1e-999\n",
        "10\n9223372036854775807\n", "10\n2305843009213693952\n",
        "10\n99999999999999999999\n", "999999999999\n2\n",
        "10 1e300\n5 1e300\n"}) {
    const auto set = ParseGradientSet(text);
    ASSERT_FALSE(set.ok()) << text;
    EXPECT_THAT(set.status().message(), HasSubstr("line 2"));
  }
  EXPECT_FALSE(ParseGradientSet("# nothing\n").ok());
}

TEST(GradientSetTest, UnknownNameIsAnErrorThatListsTheBuiltInSets) {
  const auto set = GradientSetNamed("/nonexistent/resnet51");
  ASSERT_FALSE(set.ok());
  EXPECT_THAT(set.status().message(), HasSubstr("resnet50-cifar10"));
  // It opens, and cannot be read.
  EXPECT_THAT(GradientSetNamed("/").status().message(),
              HasSubstr("/: no such set"));
}

TEST(EpochTableTest, NumbersThatDoNotFitAreErrorsThatNameTheField) {
  const auto error = [](const std::string& field, const std::string& value) {
    nlohmann::json table = nlohmann::json::parse(
        R"({"source": "s", "images": 1, "batch_per_rank": 1,
            "cores_per_node": 1, "nodes": [1], "columns": [
            {"name": "c", "ranks_per_node": 1, "epoch_seconds": [1]}]})");
    EXPECT_TRUE(ParseEpochTable(table.dump()).ok());
    nlohmann::json& place =
        field == "ranks_per_node" ? table["columns"][0][field] : table[field];
    place = nlohmann::json::parse(value);
    return std::string(ParseEpochTable(table.dump()).status().message());
  };
  for (const char* field :
       {"images", "batch_per_rank", "cores_per_node", "ranks_per_node"}) {
    for (const char* value : {"4294967297", "1e300", "-4294967295", "1.5",
                              "18446744073709551615", "true"}) {
      EXPECT_THAT(error(field, value), HasSubstr(field)) << value;
    }
  }
  EXPECT_THAT(error("nodes", "[4294967297]"), HasSubstr("nodes"));
  EXPECT_THAT(ReadEpochTable("/").status().message(),
              HasSubstr("/: cannot be read"));
}

// ---- Allreduce. An exchange of n bytes takes 12 us + 3 ns n.

AllreduceModel Allreduce(AllreduceAlgorithm algorithm) {
  AllreduceModel model;
  model.algorithm = algorithm;
  model.between_nodes = {
      .latency_us = 10, .overhead_us = 1, .gap_us = 0, .ns_per_byte = 1};
  model.within_node = {
      .latency_us = 1, .overhead_us = 0.5, .gap_us = 0, .ns_per_byte = 0.1};
  model.software_ns_per_byte = 2;
  return model;
}

double Microseconds(const AllreduceModel& model, int64_t bytes, int ranks) {
  return 1e6 * AllreduceSeconds(model, bytes, ranks);
}

TEST(AllreduceCostTest, OneRankNeedsNone) {
  const auto model = Allreduce(AllreduceAlgorithm::kRing);
  EXPECT_EQ(AllreduceSeconds(model, 1000, 1), 0);
  EXPECT_EQ(AllreduceSeconds(model, 0, 8), 0);
}

TEST(AllreduceCostTest, RecursiveDoublingExchangesAllBytesLog2Times) {
  const auto model = Allreduce(AllreduceAlgorithm::kRecursiveDoubling);
  EXPECT_NEAR(Microseconds(model, 1000, 2), 15, 1e-9);
  EXPECT_NEAR(Microseconds(model, 1000, 8), 3 * 15, 1e-9);
  // One rank of five folds its buffer into another's before and after.
  EXPECT_NEAR(Microseconds(model, 1000, 5), (2 + 2) * 15, 1e-9);
}

TEST(AllreduceCostTest, RingExchangesPartsTwicePerNeighbour) {
  const auto model = Allreduce(AllreduceAlgorithm::kRing);
  EXPECT_NEAR(Microseconds(model, 4000, 4), 2 * 3 * (12 + 3), 1e-9);
}

TEST(AllreduceCostTest, RabenseifnerExchangesHalvesAndQuarters) {
  const auto model = Allreduce(AllreduceAlgorithm::kRabenseifner);
  EXPECT_NEAR(Microseconds(model, 4000, 4), 2 * (12 + 6) + 2 * (12 + 3), 1e-9);
}

TEST(AllreduceCostTest, FastestDependsOnTheSize) {
  const auto fastest = Allreduce(AllreduceAlgorithm::kFastest);
  const auto doubling = Allreduce(AllreduceAlgorithm::kRecursiveDoubling);
  const auto halving = Allreduce(AllreduceAlgorithm::kRabenseifner);
  EXPECT_EQ(AllreduceSeconds(fastest, 8, 64),
            AllreduceSeconds(doubling, 8, 64));
  EXPECT_EQ(AllreduceSeconds(fastest, 1 << 24, 64),
            AllreduceSeconds(halving, 1 << 24, 64));
  EXPECT_LT(AllreduceSeconds(halving, 1 << 24, 64),
            AllreduceSeconds(doubling, 1 << 24, 64));
}

TEST(AllreduceCostTest, RanksOfANodeShareItsPort) {
  auto model = Allreduce(AllreduceAlgorithm::kRecursiveDoubling);
  model.software_ns_per_byte = 0;
  model.ranks_per_node = 2;
  // One exchange in the node, then one with two ranks at the port.
  EXPECT_NEAR(Microseconds(model, 1000, 4), (2 + 0.1) + (12 + 2), 1e-9);
  EXPECT_NEAR(Microseconds(model, 1000, 2), 2 + 0.1, 1e-9);
}

TEST(AllreduceCostTest, TwoLevelsReduceInTheNodeAndThenPartsAmongNodes) {
  auto model = Allreduce(AllreduceAlgorithm::kRecursiveDoubling);
  model.software_ns_per_byte = 0;
  model.ranks_per_node = 2;
  model.hierarchical = true;
  model.shared_memory_ns_per_byte = 0.5;
  const double within_node = 2 * (1 + 2 * 0.5) + 0.5e-3 * 2 * 1000;
  EXPECT_NEAR(Microseconds(model, 2000, 2), within_node, 1e-9);
  EXPECT_NEAR(Microseconds(model, 2000, 4), within_node + 12 + 2, 1e-9);
  model.ranks_per_node = 1;
  EXPECT_NEAR(Microseconds(model, 2000, 4), 2 * (12 + 2), 1e-9);
}

TEST(AllreduceCostTest, LargeBuffersGoInPieces) {
  auto model = Allreduce(AllreduceAlgorithm::kRecursiveDoubling);
  model.chunk_bytes = 400;
  EXPECT_NEAR(Microseconds(model, 1000, 2), 2 * (12 + 1.2) + (12 + 0.6), 1e-9);
  EXPECT_NEAR(Microseconds(model, 300, 2), 12 + 0.9, 1e-9);
}

TEST(AllreduceCostTest, AlgorithmsHaveNames) {
  EXPECT_EQ(AllreduceAlgorithmNamed("ring"), AllreduceAlgorithm::kRing);
  EXPECT_EQ(AllreduceAlgorithmNamed("tree"), std::nullopt);
}

TEST(CostModelTest, BatchesTakeTheTimeOfTheirAllreduce) {
  CostModel cost;
  cost.batch_us = 5;
  EXPECT_EQ(cost.BatchNanos(1000, 8), 5000);
  cost.allreduce = Allreduce(AllreduceAlgorithm::kRecursiveDoubling);
  EXPECT_EQ(cost.BatchNanos(1000, 8), 5000 + 45'000);
  cost.allreduce_ranks = 16;
  EXPECT_EQ(cost.BatchNanos(1000, 8), 5000 + 60'000);
}

// ---- Jitter and starvation.

TEST(OrderStatisticsTest, MaximumIsTheHarmonicNumber) {
  EXPECT_DOUBLE_EQ(ExpectedExponentialMaximum(1), 1);
  EXPECT_DOUBLE_EQ(ExpectedExponentialMaximum(2), 1.5);
  EXPECT_DOUBLE_EQ(ExpectedExponentialMaximum(4), 25.0 / 12);
}

TEST(OrderStatisticsTest, MaximumIsThatOfWhatTheSimulatorDraws) {
  std::mt19937_64 random(1);
  constexpr int kDraws = 64;
  constexpr int kRounds = 4000;
  double sum = 0;
  for (int round = 0; round < kRounds; ++round) {
    double maximum = 0;
    for (int i = 0; i < kDraws; ++i) {
      maximum = std::max(maximum, DrawExponential(1, random));
    }
    sum += maximum;
  }
  EXPECT_NEAR(sum / kRounds, ExpectedExponentialMaximum(kDraws), 0.08);
}

TEST(StarvationTest, SharedCoreCostsHalfWhileTheOtherThreadRuns) {
  EXPECT_EQ(StarvedShare(CommunicationCore::kShared, 48, 1), 0.5);
  EXPECT_EQ(StarvedShare(CommunicationCore::kShared, 48, 0.2), 0.1);
}

TEST(StarvationTest, OwnCoreCostsAThreadOfTheTeam) {
  EXPECT_DOUBLE_EQ(StarvedShare(CommunicationCore::kOwn, 12, 1), 1.0 / 12);
  EXPECT_EQ(StarvedShare(CommunicationCore::kOwn, 1, 1), 0.5);
  EXPECT_EQ(StarvedShare(CommunicationCore::kSpare, 12, 1), 0);
}

// ---- Epochs.

int64_t StepsOn(int ranks) {
  int64_t steps = 0;
  for (const StepGroup& group :
       StepsOfEpoch(50'000, 512, ranks, LastBatch::kPartial)) {
    steps += group.steps;
  }
  return steps;
}

TEST(EpochTest, HasTheStepsOfThePublishedTrace) { EXPECT_EQ(StepsOn(2), 49); }

TEST(EpochTest, HasImagesDividedByTheGlobalBatchRoundedUp) {
  for (int ranks = 1; ranks <= 40'000; ranks = ranks * 3 / 2 + 1) {
    EXPECT_EQ(StepsOn(ranks), (50'000 + 512L * ranks - 1) / (512L * ranks))
        << ranks;
  }
  EXPECT_EQ(StepsOn(128), 1);
  EXPECT_EQ(StepsOn(8192), 1);
}

TEST(EpochTest, LastStepTakesWhatIsLeftOrAFullBatch) {
  const auto partial = StepsOfEpoch(50'000, 512, 8, LastBatch::kPartial);
  ASSERT_THAT(partial, SizeIs(2));
  EXPECT_EQ(partial[0].steps, 12);
  EXPECT_EQ(partial[0].images, 512);
  EXPECT_EQ(partial[1].steps, 1);
  EXPECT_EQ(partial[1].images, 6250 - 12 * 512);
  const auto full = StepsOfEpoch(50'000, 512, 8, LastBatch::kFull);
  ASSERT_THAT(full, SizeIs(1));
  EXPECT_EQ(full[0].steps, 13);
  const auto one = StepsOfEpoch(50'000, 512, 128, LastBatch::kFull);
  ASSERT_THAT(one, SizeIs(1));
  EXPECT_EQ(one[0].images, 512);
  EXPECT_THAT(StepsOfEpoch(1024, 512, 2, LastBatch::kPartial), SizeIs(1));
}

TEST(EpochTest, TakesTheSumOfItsStepsAndWhatItsFirstBatchCosts) {
  ComputeModel compute;
  compute.image_ms = 40;
  compute.first_batch_share = 0.25;
  const auto steps = StepsOfEpoch(1000, 100, 3, LastBatch::kPartial);
  const EpochTime epoch = TimeOfEpoch(steps, compute, [](int images) {
    StepTime time;
    time.step = images;
    time.exposed = 0.25;
    return time;
  });
  EXPECT_EQ(epoch.steps, 4);
  EXPECT_DOUBLE_EQ(epoch.seconds, 3 * 100 + 34 + 0.25 * 100 * 0.040);
  EXPECT_DOUBLE_EQ(epoch.exposed_seconds, 4 * 0.25);
}

}  // namespace
}  // namespace hvdlite::scale_sim
