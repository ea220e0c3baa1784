// What fits and predictions are told as, and predictions.
#include "tools/scale_sim/prediction.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/scale_sim/tables.h"
#include "tools/scale_sim/epoch_pages.h"
#include "tools/scale_sim/epoch_reports.h"

namespace hvdlite::scale_sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// ---- Reports.

FitReport Report(std::vector<int> fit_nodes) {
  FitReport report;
  report.table = Published();
  report.options = Options(std::move(fit_nodes));
  for (size_t i = 0; i < report.table.columns.size(); ++i) {
    report.fits.push_back(PublishedFit(report.options.fit_nodes, i));
  }
  return report;
}

TEST(FitReportTest, TableMarksFittedPointsAndTellsHeldOutErrors) {
  const FitReport report = Report({1, 2, 8});
  std::ostringstream text;
  PrintFit(report, text);
  EXPECT_THAT(text.str(), HasSubstr("Strong scaling"));
  EXPECT_THAT(text.str(), HasSubstr("\nFujitsu/1    128                2.54 "));
  EXPECT_THAT(text.str(), HasSubstr("\nFujitsu/1      8  *            17.80 "));
  const auto json = nlohmann::json::parse(FitToJson(report));
  ASSERT_EQ(json["columns"].size(), 6u);
  const auto& column = json["columns"][0];
  EXPECT_EQ(column["name"], "Fujitsu/1");
  EXPECT_EQ(column["held_out_median_error"], report.fits[0].median_error);
  EXPECT_EQ(column["points"][3]["fitted"], true);
  EXPECT_EQ(column["points"][4]["fitted"], false);
  EXPECT_EQ(column["parameters"]["image-ms"]["fitted"], true);
  EXPECT_EQ(column["parameters"]["jitter"]["fitted"], false);
  EXPECT_EQ(column["beyond"].size(), 5u);
  EXPECT_EQ(column["beyond"][4]["times_as_many_nodes"], 32);
  EXPECT_EQ(column["beyond"][4]["max_error"],
            report.fits[0].beyond[4].max_error);
  EXPECT_THAT(text.str(), HasSubstr("\nFujitsu/1                   32 "));
}

TEST(FitReportTest, RankOfFourHasTheSpeedOfFewCores) {
  const FitReport report = Report({1, 2, 8});
  EXPECT_EQ(CoresWorth(report, report.fits[0]), std::nullopt);
  for (size_t i = 3; i < 6; ++i) {
    const auto cores = CoresWorth(report, report.fits[i]);
    ASSERT_TRUE(cores.has_value());
    EXPECT_GT(*cores, 1);
    EXPECT_LT(*cores, 2);
  }
}

// ---- Predictions.

// What scale_sim predict adds if nobody says what.
std::vector<HvdliteVariant> AllSteps(HvdliteAssumptions full = {
                                         .ranks_per_node = 4,
                                         .core = CommunicationCore::kOwn}) {
  full.options.max_simulated_ranks = 16;
  return Ablation({}, full,
                  {Addition::kCore, Addition::kOverlap, Addition::kRanks,
                   Addition::kSharedMemory});
}

TEST(PredictionTest, EfficienciesReferToOneNodeOfTheSameSystem) {
  const EpochTable table = Published();
  const ColumnFit& fit = PublishedFit({1, 2, 8});
  const auto predictions = Predict(table, fit, AllSteps(), {1, 16});
  ASSERT_TRUE(predictions.ok()) << predictions.status();
  ASSERT_THAT(*predictions, SizeIs(12));
  for (size_t system = 0; system < 6; ++system) {
    const Prediction& one = (*predictions)[system];
    const Prediction& many = (*predictions)[6 + system];
    EXPECT_EQ(one.nodes, 1);
    EXPECT_EQ(many.nodes, 16);
    EXPECT_EQ(one.system, many.system);
    EXPECT_DOUBLE_EQ(one.efficiency, 1);
    EXPECT_DOUBLE_EQ(one.weak_efficiency, 1);
    EXPECT_EQ(many.ranks, system < 4 ? 16 : 64);
    EXPECT_DOUBLE_EQ(many.speedup, one.epoch.seconds / many.epoch.seconds);
    EXPECT_DOUBLE_EQ(many.efficiency, many.speedup / 16);
    EXPECT_DOUBLE_EQ(many.weak_efficiency,
                     one.full_step.step / many.full_step.step);
    EXPECT_DOUBLE_EQ(many.epoch_gain,
                     (*predictions)[6].epoch.seconds / many.epoch.seconds);
    EXPECT_EQ(many.epoch.steps, 7);
    EXPECT_EQ(many.reach.factor, 2);
    EXPECT_EQ(many.reach.tested_error, fit.beyond[0].max_error);
    EXPECT_EQ(one.reach.factor, 1.0 / 8);
  }
  // Horovod's are those of the fit.
  EXPECT_EQ((*predictions)[6].system, "horovod");
  EXPECT_DOUBLE_EQ((*predictions)[6].epoch.seconds,
                   fit.points[4].predicted_seconds);
}

TEST(PredictionTest, EqualSettingsAreThoseOfTheFit) {
  const EpochTable table = Published();
  const ColumnFit& fit = PublishedFit({1, 2, 8}, 2);
  const HvdliteAssumptions equal = AllSteps().front().assumptions;
  const TrainingModel model = HvdliteTrainingModel(table, fit, equal);
  const TrainingModel& horovod = fit.model.training;
  EXPECT_EQ(model.compute.image_ms, horovod.compute.image_ms);
  EXPECT_EQ(model.compute.starved_share, horovod.compute.starved_share);
  EXPECT_GT(model.compute.starved_share, 0.2);
  EXPECT_EQ(model.allreduce.ranks_per_node, 1);
  EXPECT_FALSE(model.allreduce.hierarchical);
  EXPECT_FALSE(equal.options.overlap);
  EXPECT_TRUE(Ablation({.overlap = 1}, {}, {})[0].assumptions.options.overlap);
  EXPECT_EQ(Ablation({.fusion_bytes = 77}, {}, {})[0]
                .assumptions.options.fusion_threshold_bytes,
            77);
  // Nearly the same step, then: what negotiation saves is little.
  const auto predictions = Predict(table, fit, AllSteps(), {32});
  ASSERT_TRUE(predictions.ok()) << predictions.status();
  EXPECT_NEAR((*predictions)[1].epoch_gain, 1, 0.05);
}

TEST(PredictionTest, EachAdditionChangesOneThingOnTopOfThoseBefore) {
  const std::vector<HvdliteVariant> steps = AllSteps();
  ASSERT_THAT(steps, SizeIs(5));
  std::vector<std::string> names;
  for (const HvdliteVariant& step : steps) names.push_back(NameOf(step));
  EXPECT_THAT(
      names, ElementsAre("hvdlite, equal settings", "+ core of its own",
                         "+ overlap", "+ 4 ranks per node", "+ shared memory"));
  EXPECT_EQ(steps[0].assumptions.core, std::nullopt);
  EXPECT_EQ(steps[1].assumptions.core, CommunicationCore::kOwn);
  EXPECT_FALSE(steps[1].assumptions.options.overlap);
  EXPECT_TRUE(steps[2].assumptions.options.overlap);
  EXPECT_EQ(steps[2].assumptions.ranks_per_node, 1);
  EXPECT_EQ(steps[3].assumptions.ranks_per_node, 4);
  EXPECT_FALSE(steps[3].assumptions.hierarchical);
  EXPECT_TRUE(steps[4].assumptions.hierarchical);
  EXPECT_TRUE(steps[4].assumptions.options.overlap);
  const auto others = Ablation(
      {},
      {.algorithm = AllreduceAlgorithm::kRing, .software_ns_per_byte = 0.25},
      {Addition::kAlgorithm, Addition::kSoftware});
  EXPECT_EQ(others[1].assumptions.algorithm, AllreduceAlgorithm::kRing);
  EXPECT_EQ(others[1].assumptions.software_ns_per_byte, std::nullopt);
  EXPECT_EQ(others[2].assumptions.software_ns_per_byte, 0.25);
}

TEST(PredictionTest, AssumptionsChangeTheModel) {
  const EpochTable table = Published();
  const ColumnFit& fit = PublishedFit({1, 2, 8}, 1);
  HvdliteAssumptions assumptions = AllSteps().back().assumptions;
  TrainingModel model = HvdliteTrainingModel(table, fit, assumptions);
  EXPECT_DOUBLE_EQ(model.compute.image_ms,
                   4 * fit.model.training.compute.image_ms);
  EXPECT_DOUBLE_EQ(model.compute.starved_share, 1.0 / 12);
  EXPECT_EQ(model.allreduce.software_ns_per_byte,
            fit.model.training.allreduce.software_ns_per_byte);
  EXPECT_TRUE(model.allreduce.hierarchical);
  assumptions.ranks_per_node = 1;
  assumptions.core = CommunicationCore::kShared;
  assumptions.busy_share = 0.1;
  assumptions.hierarchical = false;
  assumptions.software_ns_per_byte = 0.25;
  assumptions.algorithm = AllreduceAlgorithm::kRing;
  model = HvdliteTrainingModel(table, fit, assumptions);
  EXPECT_DOUBLE_EQ(model.compute.starved_share, 0.05);
  EXPECT_FALSE(model.allreduce.hierarchical);
  EXPECT_EQ(model.allreduce.software_ns_per_byte, 0.25);
  EXPECT_EQ(model.allreduce.algorithm, AllreduceAlgorithm::kRing);
}

TEST(PredictionTest, RefusesWhatItKnowsTooLittleOf) {
  const EpochTable table = Published();
  const auto of_four =
      Predict(table, PublishedFit({1, 2, 8}, 3), AllSteps(), {2});
  ASSERT_FALSE(of_four.ok());
  EXPECT_THAT(of_four.status().message(), HasSubstr("Fujitsu/4"));
  const auto uneven = Predict(table, PublishedFit({1, 2, 8}),
                              AllSteps({.ranks_per_node = 5}), {2});
  ASSERT_FALSE(uneven.ok());
  EXPECT_THAT(uneven.status().message(), HasSubstr("divide 48 cores"));
}

TEST(PredictionReportTest, SaysEveryAssumptionAndHowFarItWasTested) {
  PredictionReport report;
  report.table = Published();
  report.variants = AllSteps();
  ColumnPrediction column;
  column.fit = PublishedFit({1, 4, 16, 64});
  column.predictions =
      *Predict(report.table, column.fit, report.variants, {4, 1024, 8192});
  report.columns = {column};
  std::ostringstream text;
  PrintPredictions(report, text);
  const std::string words = absl::StrJoin(
      absl::StrSplit(text.str(), absl::ByAnyChar(" \n"), absl::SkipEmpty()),
      " ");
  for (const char* part :
       {"--forward-share",
        "--jitter",
        "--first-batch-share",
        "--cycle-ms",
        "--fusion-bytes",
        "--overlap",
        "--ranks-per-node",
        "--comm-core own",
        "2.1 %",
        "--chunk-bytes",
        "Strong scaling",
        "then weak scaling",
        " 4 horovod 4 ",
        " 4 hvdlite, equal settings 4 ",
        " 4 + shared memory 16 ",
        "to the rows of 1, 4, 16, 64 nodes",
        "those of 2, 8, 32, 128",
        "- 4 nodes: among the rows",
        "- 1024 nodes: 16 times beyond",
        "- 8192 nodes: 128 times beyond the rows that were fitted; nothing was "
        "measured so far away"}) {
    EXPECT_THAT(words, HasSubstr(part));
  }
  const auto json = nlohmann::json::parse(PredictionsToJson(report));
  const auto& predictions = json["columns"][0]["predictions"];
  ASSERT_EQ(predictions.size(), 18u);
  EXPECT_EQ(predictions[1]["system"], "hvdlite, equal settings");
  EXPECT_EQ(predictions[1]["strong_scaling"]["epoch_seconds"],
            column.predictions[1].epoch.seconds);
  EXPECT_EQ(predictions[6]["times_beyond_fitted"], 16);
  EXPECT_EQ(predictions[6]["largest_error_measured_so_far_away"],
            *column.predictions[6].reach.tested_error);
  EXPECT_TRUE(predictions[12]["largest_error_measured_so_far_away"].is_null());
  EXPECT_EQ(json["columns"][0]["fit"]["held_out_max_error"],
            column.fit.max_error);
  EXPECT_EQ(json["columns"][0]["fit"]["points"][1]["fitted"], false);
  const auto& assumptions = json["columns"][0]["assumptions"];
  EXPECT_EQ(assumptions["both"].size(), 4u);
  EXPECT_EQ(assumptions["horovod"].size(), 4u);
  EXPECT_EQ(assumptions["hvdlite"].size(), 3u);
  EXPECT_EQ(assumptions["added"].size(), 4u);
}

TEST(PredictionReportTest, PageDrawsWhatWasMeasuredAndEachSystem) {
  PredictionReport report;
  report.table = Published();
  report.variants = AllSteps();
  ColumnPrediction column;
  column.fit = PublishedFit({1, 4, 16, 64});
  column.predictions =
      *Predict(report.table, column.fit, report.variants, {4, 256});
  report.columns = {column};
  const std::string page = PredictionsPage(report);
  for (const char* part :
       {">measured</text>", ">horovod</text>", ">+ shared memory</text>",
        "<th>fitted to</th>", "<td>1, 4, 16, 64</td>", "<th>256 nodes</th>",
        "4 times beyond the rows"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
  size_t curves = 0;
  for (size_t at = page.find("<polyline"); at != std::string::npos;
       at = page.find("<polyline", at + 1)) {
    ++curves;
  }
  EXPECT_EQ(curves, 7u + 6u);
}

}  // namespace
}  // namespace hvdlite::scale_sim
