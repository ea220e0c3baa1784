// Fits: to synthetic tables whose parameters are known, and to the published
// one.
#include "tools/scale_sim/fit.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/statistics.h"
#include "tests/tools/scale_sim/tables.h"

namespace hvdlite::scale_sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// What a training with these parameters would measure.
EpochTable SyntheticTable(const HorovodModel& model, double noise,
                          int ranks_per_node) {
  EpochTable table;
  table.images = 50'000;
  table.batch_per_rank = 512;
  table.cores_per_node = 48;
  table.nodes = {1, 2, 4, 8, 16, 32, 64, 128};
  EpochColumn column;
  column.name = "synthetic";
  column.ranks_per_node = ranks_per_node;
  std::mt19937_64 random(1);
  HorovodModel own = model;
  own.training.allreduce.ranks_per_node = ranks_per_node;
  for (const int nodes : table.nodes) {
    const double uniform = static_cast<double>(random() % 2001) / 1000 - 1;
    column.epoch_seconds.push_back(HorovodEpoch(own, table.images,
                                                table.batch_per_rank,
                                                nodes * ranks_per_node)
                                       .seconds *
                                   (1 + noise * uniform));
  }
  table.columns = {column};
  return table;
}

HorovodModel Known() {
  HorovodModel model = Options({}).model;
  model.training.compute.image_ms = 2;
  model.training.compute.starved_share = 0.3;
  model.training.compute.first_batch_share = 0.25;
  model.training.allreduce.software_ns_per_byte = 3;
  return model;
}

// ---- The search.

TEST(NelderMeadTest, FindsTheMinimumOfRosenbrocksValley) {
  const auto valley = [](const std::vector<double>& x) {
    return 100 * std::pow(x[1] - x[0] * x[0], 2) + std::pow(1 - x[0], 2);
  };
  const Minimum minimum = NelderMead(valley, {-1.2, 1}, 0.5, 1e-14, 2000);
  EXPECT_NEAR(minimum.point[0], 1, 1e-5);
  EXPECT_NEAR(minimum.point[1], 1, 1e-5);
  EXPECT_LT(minimum.value, 1e-10);
}

TEST(NelderMeadTest, StopsAfterTheIterationsThatItIsGiven) {
  int calls = 0;
  NelderMead(
      [&](const std::vector<double>& x) {
        ++calls;
        return x[0] * x[0];
      },
      {1e6}, 1, 0, 10);
  EXPECT_LE(calls, 2 + 10 * 3);
}

// ---- Synthetic tables.

TEST(FitTest, RecoversTheParametersOfATableWithoutNoise) {
  FitOptions options = Options({1, 2, 8, 64});
  options.parameters.push_back("first-batch-share");
  const ColumnFit fit = Fitted(SyntheticTable(Known(), 0, 1), options);
  const TrainingModel& found = fit.model.training;
  EXPECT_THAT(fit.parameters, SizeIs(4));
  EXPECT_NEAR(found.compute.image_ms, 2, 1e-3);
  EXPECT_NEAR(found.compute.starved_share, 0.3, 1e-3);
  EXPECT_NEAR(found.compute.first_batch_share, 0.25, 5e-3);
  EXPECT_NEAR(found.allreduce.software_ns_per_byte, 3, 1e-2);
  // Horovod's cycles make steps of a millisecond in the times.
  EXPECT_LT(fit.max_error, 1e-3);
}

TEST(FitTest, RecoversTheParametersOfANoisyTable) {
  FitOptions options = Options({1, 2, 4, 8, 32, 128});
  options.model.training.compute.first_batch_share = 0.25;
  const ColumnFit fit = Fitted(SyntheticTable(Known(), 0.02, 1), options);
  const TrainingModel& found = fit.model.training;
  EXPECT_NEAR(found.compute.image_ms, 2, 0.06);
  EXPECT_NEAR(found.compute.starved_share, 0.3, 0.05);
  EXPECT_NEAR(found.allreduce.software_ns_per_byte, 3, 0.3);
  EXPECT_LT(fit.max_error, 0.05);
}

TEST(FitTest, RecoversJitterFromItsGrowthWithTheNumberOfRanks) {
  HorovodModel model = Known();
  model.training.compute.jitter = 0.05;
  model.training.compute.first_batch_share = 0;
  model.training.allreduce.software_ns_per_byte = 0;
  FitOptions options = Options({1, 4, 64});
  options.model.training.compute.first_batch_share = 0;
  options.parameters = {"image-ms", "jitter", "starved-share"};
  const ColumnFit fit = Fitted(SyntheticTable(model, 0, 1), options);
  EXPECT_NEAR(fit.model.training.compute.jitter, 0.05, 1e-3);
}

TEST(FitTest, FitsNoMoreParametersThanThereArePoints) {
  const EpochTable table = SyntheticTable(Known(), 0, 1);
  EXPECT_THAT(Fitted(table, Options({1, 8})).parameters,
              ElementsAre("image-ms", "starved-share"));
}

TEST(FitTest, StarvationCannotBeToldWhereEveryPointHasSeveralRanks) {
  const EpochTable table = SyntheticTable(Known(), 0, 4);
  EXPECT_THAT(Fitted(table, Options({1, 8})).parameters,
              ElementsAre("image-ms", "software-ns-per-byte"));
  EXPECT_THAT(Fitted(SyntheticTable(Known(), 0, 1), Options({2, 8})).parameters,
              ElementsAre("image-ms", "software-ns-per-byte"));
}

// ---- What is held out stays out.

TEST(FitTest, HeldOutPointsDoNotMoveTheFit) {
  EpochTable table = SyntheticTable(Known(), 0, 1);
  const ColumnFit before = Fitted(table, Options({1, 2, 8, 64}));
  table.columns[0].epoch_seconds[7] *= 10;
  const ColumnFit after = Fitted(table, Options({1, 2, 8, 64}));
  for (const FitParameter& parameter : FitParameters()) {
    HorovodModel first = before.model;
    HorovodModel second = after.model;
    EXPECT_EQ(parameter.of(first), parameter.of(second)) << parameter.name;
  }
  EXPECT_NEAR(after.max_error, 0.9, 1e-3);
}

TEST(FitTest, ErrorsAreThoseOfHeldOutPointsOnly) {
  EpochTable table = SyntheticTable(Known(), 0, 1);
  // Two points that one parameter cannot meet.
  table.columns[0].epoch_seconds[0] *= 4;
  FitOptions options = Options({1, 2});
  options.model = Known();
  options.parameters = {"image-ms"};
  const ColumnFit fit = Fitted(table, options);
  std::vector<double> held_out;
  for (const FittedPoint& point : fit.points) {
    EXPECT_EQ(point.fitted, point.nodes <= 2);
    if (point.fitted) {
      EXPECT_GT(std::abs(point.error()), 0.3);
    } else {
      held_out.push_back(std::abs(point.error()));
    }
  }
  EXPECT_THAT(held_out, SizeIs(6));
  EXPECT_DOUBLE_EQ(fit.median_error, support::Median(held_out));
  EXPECT_DOUBLE_EQ(fit.max_error,
                   *std::max_element(held_out.begin(), held_out.end()));
  EXPECT_GT(fit.points[1].error(), fit.max_error);  // which was fitted
}

TEST(FitTest, RefusesNodesAndParametersThatDoNotExist) {
  const EpochTable table = SyntheticTable(Known(), 0, 1);
  const auto message = [&](const FitOptions& options) {
    const auto fit = FitColumn(table, table.columns[0], options);
    return fit.ok() ? "" : std::string(fit.status().message());
  };
  EXPECT_THAT(message(Options({1, 3})), HasSubstr("no row for 3 nodes"));
  EXPECT_THAT(message(Options({1, 1})), HasSubstr("named twice"));
  EXPECT_THAT(message(Options({})), HasSubstr("at least one"));
  EXPECT_THAT(message(Options(table.nodes)), HasSubstr("none is left"));
  FitOptions options = Options({1, 2});
  options.parameters = {"speed"};
  EXPECT_THAT(message(options),
              AllOf(HasSubstr("'speed'"), HasSubstr("image-ms")));
  options.parameters = {"image-ms", "image-ms"};
  EXPECT_THAT(message(options), HasSubstr("named twice"));
}

TEST(FitTest, ATableOfOneRowHasNothingToPredict) {
  EpochTable table = SyntheticTable(Known(), 0, 1);
  table.nodes = {4};
  table.columns[0].epoch_seconds = {100};
  EXPECT_THAT(DefaultFitNodes(table), SizeIs(0));
  const auto fit =
      FitColumn(table, table.columns[0], Options(DefaultFitNodes(table)));
  ASSERT_FALSE(fit.ok());
  EXPECT_THAT(fit.status().message(),
              AllOf(HasSubstr("a single row, of 4 nodes"),
                    HasSubstr("takes two or more")));
}

TEST(FitTest, EveryOtherRowIsFittedButNotTheLast) {
  EpochTable table;
  const auto chosen = [&](std::vector<int> nodes) {
    table.nodes = std::move(nodes);
    return DefaultFitNodes(table);
  };
  EXPECT_THAT(chosen({1, 2, 4, 8, 16, 32, 64, 128}), ElementsAre(1, 4, 16, 64));
  EXPECT_THAT(chosen({1, 2, 4, 8, 16, 32, 64}), ElementsAre(1, 4, 16));
  EXPECT_THAT(chosen({1, 2, 4, 8, 16, 32}), ElementsAre(1, 4, 16));
  EXPECT_THAT(chosen({1, 2, 4, 8, 16}), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(chosen({1, 3}), ElementsAre(1));
}

// ---- How far it was tested.

TEST(FitTest, ErrorsGrowWithTheDistanceWhereTheModelLacksSomething) {
  HorovodModel model = Known();
  model.training.compute.jitter = 0.1;
  FitOptions options = Options({1, 4, 16, 64});
  options.parameters = {"image-ms", "starved-share"};
  options.model = Known();
  const EpochTable table = SyntheticTable(model, 0, 1);
  const ColumnFit fit = Fitted(table, options);
  // From up to 4, 8, ..., 64 nodes to all that are more.
  ASSERT_THAT(fit.beyond, SizeIs(5));
  EXPECT_EQ(fit.beyond[0].factor, 2);
  EXPECT_EQ(fit.beyond[0].rows, 5);
  EXPECT_EQ(fit.beyond[4].factor, 32);
  EXPECT_EQ(fit.beyond[4].rows, 1);
  EXPECT_GT(fit.beyond[0].max_error, 0);
  const ColumnFit first_three = Fitted(table, [&] {
    FitOptions own = options;
    own.fit_nodes = {1, 2, 4};
    return own;
  }());
  EXPECT_DOUBLE_EQ(fit.beyond[4].max_error,
                   std::abs(first_three.points[7].error()));
}

TEST(FitTest, ReachOfAPredictionIsWhatWasMeasuredAtLeastAsFarAway) {
  ColumnFit fit;
  EXPECT_EQ(ReachOf(fit, 8).factor, 0);
  EXPECT_FALSE(ReachOf(fit, 8).tested_error.has_value());
  fit.points = {{.nodes = 1, .fitted = true},
                {.nodes = 2, .measured_seconds = 1, .predicted_seconds = 0.75},
                {.nodes = 4, .fitted = true},
                {.nodes = 8, .measured_seconds = 1, .predicted_seconds = 3}};
  fit.beyond = {{.factor = 2, .max_error = 0.1, .rows = 2},
                {.factor = 4, .max_error = 0.3, .rows = 1}};
  EXPECT_EQ(ReachOf(fit, 3).factor, 0.75);
  EXPECT_EQ(ReachOf(fit, 3).tested_error, 0.25);  // not that of 8 nodes
  EXPECT_EQ(ReachOf(fit, 8).factor, 2);
  EXPECT_EQ(ReachOf(fit, 8).tested_error, 0.1);
  EXPECT_EQ(ReachOf(fit, 12).tested_error, 0.3);
  EXPECT_EQ(ReachOf(fit, 17).tested_error, std::nullopt);
  fit.points[1].fitted = true;
  EXPECT_EQ(ReachOf(fit, 3).tested_error, std::nullopt);
}

TEST(FitTest, SubsetsAreAllChoicesOfRows) {
  const EpochTable table = SyntheticTable(Known(), 0, 1);
  FitOptions options = Options({});
  options.parameters = {"image-ms"};
  options.model = Known();
  const auto errors =
      ErrorsOfSubsets(table, table.columns[0], options, 2, 0.01);
  ASSERT_TRUE(errors.ok()) << errors.status();
  EXPECT_EQ(errors->all.subsets, 8 * 7 / 2);
  EXPECT_EQ(errors->all.medians_within, 8 * 7 / 2);
  EXPECT_EQ(errors->complete.subsets, 8 * 7 / 2);
  EXPECT_LT(errors->all.worst_maximum, 1e-3);
  EXPECT_FALSE(ErrorsOfSubsets(table, table.columns[0], options, 8, 0.1).ok());
}

TEST(FitTest, SubsetsThatTellAllParametersAreThoseWithOneRank) {
  EpochTable table = SyntheticTable(Known(), 0, 1);
  table.columns[0].epoch_seconds[3] *= 1.1;
  const auto errors = ErrorsOfSubsets(table, table.columns[0], Options({}), 4,
                                      /*bound=*/0.01);
  ASSERT_TRUE(errors.ok()) << errors.status();
  EXPECT_EQ(errors->all.subsets, 70);
  EXPECT_EQ(errors->complete.subsets, 35);
  for (const SubsetErrors& one : {errors->all, errors->complete}) {
    EXPECT_LE(one.median_of_medians, one.worst_median);
    EXPECT_LE(one.median_of_maxima, one.worst_maximum);
    EXPECT_LE(one.worst_median, one.worst_maximum);
  }
  // What starved threads cost cannot be told from others.
  EXPECT_GT(errors->all.worst_maximum, 0.25);
  EXPECT_LT(errors->complete.worst_maximum, 0.25);
}

// ---- The published table.

TEST(PublishedTableTest, HasSixColumnsOfEightRows) {
  const EpochTable table = Published();
  EXPECT_THAT(table.nodes, ElementsAre(1, 2, 4, 8, 16, 32, 64, 128));
  ASSERT_THAT(table.columns, SizeIs(6));
  EXPECT_EQ(table.columns[0].epoch_seconds[0], 99.93);
  EXPECT_EQ(table.columns[5].epoch_seconds[7], 11.7);
  EXPECT_EQ(table.columns[5].ranks_per_node, 4);
}

TEST(PublishedTableTest, EveryCellThatWasNotFittedIsWithin20Percent) {
  const EpochTable table = Published();
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const ColumnFit& fit = PublishedFit(DefaultFitNodes(table), i);
    EXPECT_LE(fit.max_error, i == 0 ? 0.20 : 0.03) << table.columns[i].name;
    EXPECT_LE(fit.median_error, 0.06) << table.columns[i].name;
    EXPECT_GT(fit.median_error, 0) << table.columns[i].name;
  }
}

TEST(PublishedTableTest, UpToEightNodesTellTheOthersButForFujitsus128) {
  const EpochTable table = Published();
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const ColumnFit& fit = PublishedFit({1, 2, 8}, i);
    EXPECT_LE(fit.max_error, i == 0 ? 0.25 : 0.08) << table.columns[i].name;
  }
}

TEST(PublishedTableTest, WithoutACostOfTheFirstBatchLargeWorldsAreMissed) {
  const EpochTable table = Published();
  FitOptions options = Options({1, 4, 16, 64});
  options.model.training.compute.first_batch_share = 0;
  for (size_t i = 3; i < table.columns.size(); ++i) {
    EXPECT_GT(Fitted(table, options, i).max_error, 0.25)
        << table.columns[i].name;
  }
}

TEST(PublishedTableTest, FirstBatchesOfFourRanksCostAThirdOnTop) {
  const EpochTable table = Published();
  FitOptions options = Options({1, 2, 4, 8, 16, 32, 64});
  options.parameters.push_back("first-batch-share");
  for (size_t i = 3; i < table.columns.size(); ++i) {
    const ColumnFit fit = Fitted(table, options, i);
    EXPECT_NEAR(fit.model.training.compute.first_batch_share, 1.0 / 3, 0.07)
        << table.columns[i].name;
  }
}

// ---- Tables in files.

std::string TableText(const std::string& nodes, const std::string& seconds) {
  return R"({"source": "s", "images": 10, "batch_per_rank": 5,
             "cores_per_node": 4, "nodes": )" +
         nodes + R"(, "columns": [{"name": "c", "ranks_per_node": 2,
             "epoch_seconds": )" +
         seconds + "}]}";
}

TEST(EpochTableTest, IsReadFromJson) {
  const auto table = ParseEpochTable(TableText("[1, 2]", "[3, 2.5]"));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->images, 10);
  EXPECT_EQ(table->columns[0].ranks_per_node, 2);
  EXPECT_THAT(table->columns[0].epoch_seconds, ElementsAre(3, 2.5));
}

TEST(EpochTableTest, BadTablesAreErrorsThatNameTheField) {
  const auto message = [](const std::string& text) {
    const auto table = ParseEpochTable(text);
    return table.ok() ? "" : std::string(table.status().message());
  };
  EXPECT_THAT(message(TableText("[2, 1]", "[3, 2]")), HasSubstr("1 follows 2"));
  EXPECT_THAT(message(TableText("[]", "[]")), HasSubstr("nodes is empty"));
  EXPECT_THAT(message(TableText("[1, 2]", "[3]")),
              AllOf(HasSubstr("'c'"), HasSubstr("1 entries"), HasSubstr("2")));
  EXPECT_THAT(message(TableText("[1]", "[0]")),
              HasSubstr("epoch_seconds must be above 0"));
  EXPECT_THAT(message("{}"), HasSubstr("source"));
  EXPECT_THAT(message("x"), HasSubstr("parse error"));
  const auto missing = ReadEpochTable("/nonexistent/table.json");
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.status().message(), HasSubstr("/nonexistent/table.json"));
}

}  // namespace
}  // namespace hvdlite::scale_sim
