#include "tools/scale_sim/prediction_report.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_format.h"
#include "tools/scale_sim/prediction_assumptions.h"

namespace hvdlite::scale_sim {
namespace {

double Exposed(const StepTime& step) { return step.exposed / step.step; }

nlohmann::json Json(const Prediction& prediction) {
  return {{"system", prediction.system},
          {"nodes", prediction.nodes},
          {"ranks", prediction.ranks},
          {"simulated_ranks", prediction.simulated_ranks},
          {"strong_scaling",
           {{"steps", prediction.epoch.steps},
            {"epoch_seconds", prediction.epoch.seconds},
            {"speedup", prediction.speedup},
            {"efficiency", prediction.efficiency},
            {"exposed_share",
             prediction.epoch.exposed_seconds / prediction.epoch.seconds}}},
          {"weak_scaling",
           {{"step_seconds", prediction.full_step.step},
            {"computation_seconds", prediction.full_step.computation},
            {"communication_seconds", prediction.full_step.communication},
            {"batches", prediction.full_step.batches},
            {"efficiency", prediction.weak_efficiency},
            {"exposed_share", Exposed(prediction.full_step)}}}};
}

void PrintAssumptions(const char* of, const std::vector<std::string>& lines,
                      std::ostream& out) {
  out << "\nAssumed of " << of << ":\n";
  for (const std::string& line : lines) out << "- " << line << "\n";
}

}  // namespace

void PrintPredictions(const PredictionReport& report, std::ostream& out) {
  for (const ColumnPrediction& column : report.columns) {
    const PredictionAssumptions assumed = AssumptionsOf(report, column.fit);
    out << "## " << column.fit.column.name << "\n";
    PrintAssumptions("both systems", assumed.both, out);
    PrintAssumptions("Horovod", assumed.horovod, out);
    PrintAssumptions("hvdlite", assumed.hvdlite, out);
    out << absl::StrFormat(
        "\nStrong scaling: an epoch of %d images. Weak scaling: a step of %d "
        "images per node, whether or not the data set has as many.\n\n",
        report.table.images, report.table.batch_per_rank);
    out << "| nodes | system | ranks | strong: steps | epoch s | speed-up | "
           "efficiency % | exposed % | weak: step ms | efficiency % | exposed "
           "% |\n|---|---|---|---|---|---|---|---|---|---|---|\n";
    for (const Prediction& p : column.predictions) {
      out << absl::StrFormat(
          "| %d | %s | %d | %d | %.3g | %.1f | %.1f | %.1f | %.1f | %.1f | "
          "%.1f "
          "|\n",
          p.nodes, p.system, p.ranks, p.epoch.steps, p.epoch.seconds, p.speedup,
          100 * p.efficiency, 100 * p.epoch.exposed_seconds / p.epoch.seconds,
          1e3 * p.full_step.step, 100 * p.weak_efficiency,
          100 * Exposed(p.full_step));
    }
    out << "\n";
  }
}

std::string PredictionsToJson(const PredictionReport& report) {
  nlohmann::json columns = nlohmann::json::array();
  for (const ColumnPrediction& column : report.columns) {
    nlohmann::json predictions = nlohmann::json::array();
    for (const Prediction& prediction : column.predictions) {
      predictions.push_back(Json(prediction));
    }
    const PredictionAssumptions assumed = AssumptionsOf(report, column.fit);
    columns.push_back({{"name", column.fit.column.name},
                       {"assumptions",
                        {{"both", assumed.both},
                         {"horovod", assumed.horovod},
                         {"hvdlite", assumed.hvdlite}}},
                       {"predictions", std::move(predictions)}});
  }
  const nlohmann::json document = {
      {"source", report.table.source},
      {"images", report.table.images},
      {"images_per_node_and_step", report.table.batch_per_rank},
      {"columns", std::move(columns)}};
  return document.dump(2) + "\n";
}

}  // namespace hvdlite::scale_sim
