// What fits and predictions are told as, and predictions.
#include "tools/scale_sim/prediction.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tools/scale_sim/tables.h"
#include "tools/scale_sim/epoch_reports.h"

namespace hvdlite::scale_sim {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// ---- Reports.

FitReport Report(std::vector<int> fit_nodes) {
  FitReport report;
  report.table = Published();
  report.options = Options(std::move(fit_nodes));
  for (size_t i = 0; i < report.table.columns.size(); ++i) {
    report.fits.push_back(Fitted(report.table, report.options, i));
  }
  return report;
}

TEST(FitReportTest, TableMarksFittedPointsAndTellsHeldOutErrors) {
  const FitReport report = Report({1, 2, 8});
  std::ostringstream text;
  PrintFit(report, text);
  EXPECT_THAT(text.str(), HasSubstr("Strong scaling"));
  EXPECT_THAT(text.str(), HasSubstr("| 128 | 2.54 |"));
  EXPECT_THAT(text.str(), HasSubstr("* |"));
  const auto json = nlohmann::json::parse(FitToJson(report));
  ASSERT_EQ(json["columns"].size(), 6u);
  const auto& column = json["columns"][0];
  EXPECT_EQ(column["name"], "Fujitsu/1");
  EXPECT_EQ(column["held_out_median_error"], report.fits[0].median_error);
  EXPECT_EQ(column["points"][3]["fitted"], true);
  EXPECT_EQ(column["points"][4]["fitted"], false);
  EXPECT_EQ(column["parameters"]["image-ms"]["fitted"], true);
  EXPECT_EQ(column["parameters"]["jitter"]["fitted"], false);
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

TEST(PredictionTest, EfficienciesReferToOneNodeOfTheSameSystem) {
  const EpochTable table = Published();
  const ColumnFit fit = Fitted(table, Options({1, 2, 8}));
  const auto predictions = Predict(table, fit, {}, {1, 16});
  ASSERT_TRUE(predictions.ok()) << predictions.status();
  ASSERT_THAT(*predictions, SizeIs(4));
  for (size_t system = 0; system < 4; system += 2) {
    const Prediction& one = (*predictions)[system];
    const Prediction& many = (*predictions)[system + 1];
    EXPECT_EQ(one.system, system == 0 ? "horovod" : "hvdlite");
    EXPECT_DOUBLE_EQ(one.efficiency, 1);
    EXPECT_DOUBLE_EQ(one.weak_efficiency, 1);
    EXPECT_EQ(many.ranks, system == 0 ? 16 : 64);
    EXPECT_DOUBLE_EQ(many.speedup, one.epoch.seconds / many.epoch.seconds);
    EXPECT_DOUBLE_EQ(many.efficiency, many.speedup / 16);
    EXPECT_DOUBLE_EQ(many.weak_efficiency,
                     one.full_step.step / many.full_step.step);
    EXPECT_EQ(many.epoch.steps, 7);
  }
  // Horovod's are those of the fit.
  EXPECT_DOUBLE_EQ((*predictions)[1].epoch.seconds,
                   fit.points[4].predicted_seconds);
}

TEST(PredictionTest, AssumptionsChangeTheModel) {
  const EpochTable table = Published();
  const ColumnFit fit = Fitted(table, Options({1, 2, 8}), 1);
  HvdliteAssumptions assumptions;
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
      Predict(table, Fitted(table, Options({1, 2, 8}), 3), {}, {2});
  ASSERT_FALSE(of_four.ok());
  EXPECT_THAT(of_four.status().message(), HasSubstr("Fujitsu/4"));
  HvdliteAssumptions assumptions;
  assumptions.ranks_per_node = 5;
  const auto uneven =
      Predict(table, Fitted(table, Options({1, 2, 8})), assumptions, {2});
  ASSERT_FALSE(uneven.ok());
  EXPECT_THAT(uneven.status().message(), HasSubstr("divide 48 cores"));
}

TEST(PredictionReportTest, SaysEveryAssumptionAndBothScalings) {
  PredictionReport report;
  report.table = Published();
  ColumnPrediction column;
  column.fit = Fitted(report.table, Options({1, 2, 8}));
  column.predictions =
      *Predict(report.table, column.fit, report.assumptions, {4});
  report.columns = {column};
  std::ostringstream text;
  PrintPredictions(report, text);
  for (const char* part :
       {"--forward-share", "--jitter", "--cycle-ms", "--fusion-bytes",
        "--overlap", "--ranks-per-node", "--comm-core own", "8.3 %",
        "--no-overlap", "--one-level", "--hvdlite-software-ns-per-byte",
        "--chunk-bytes", "Strong scaling", "Weak scaling",
        "| 4 | horovod | 4 |", "| 4 | hvdlite | 16 |"}) {
    EXPECT_THAT(text.str(), HasSubstr(part));
  }
  const auto json = nlohmann::json::parse(PredictionsToJson(report));
  const auto& predictions = json["columns"][0]["predictions"];
  ASSERT_EQ(predictions.size(), 2u);
  EXPECT_EQ(predictions[1]["system"], "hvdlite");
  EXPECT_EQ(predictions[1]["strong_scaling"]["epoch_seconds"],
            column.predictions[1].epoch.seconds);
  const auto& assumptions = json["columns"][0]["assumptions"];
  EXPECT_EQ(assumptions["both"].size(), 3u);
  EXPECT_EQ(assumptions["horovod"].size(), 4u);
  EXPECT_EQ(assumptions["hvdlite"].size(), 6u);
}

}  // namespace
}  // namespace hvdlite::scale_sim
