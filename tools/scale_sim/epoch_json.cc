// Reports for programs.
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/scale_sim/epoch_reports.h"

namespace hvdlite::scale_sim {
namespace {

// Which rows were fitted, and the errors of the others.
nlohmann::json HowTested(const ColumnFit& fit) {
  nlohmann::json points = nlohmann::json::array();
  for (const FittedPoint& point : fit.points) {
    points.push_back({{"nodes", point.nodes},
                      {"measured_seconds", point.measured_seconds},
                      {"predicted_seconds", point.predicted_seconds},
                      {"error", point.error()},
                      {"fitted", point.fitted}});
  }
  nlohmann::json beyond = nlohmann::json::array();
  for (const Extrapolation& one : fit.beyond) {
    beyond.push_back({{"times_as_many_nodes", one.factor},
                      {"max_error", one.max_error},
                      {"rows", one.rows}});
  }
  return {{"points", std::move(points)},
          {"held_out_median_error", fit.median_error},
          {"held_out_max_error", fit.max_error},
          {"beyond", std::move(beyond)}};
}

nlohmann::json Json(const SubsetErrors& errors) {
  return {{"choices", errors.subsets},
          {"median_of_median_errors", errors.median_of_medians},
          {"worst_median_error", errors.worst_median},
          {"median_of_maximum_errors", errors.median_of_maxima},
          {"worst_maximum_error", errors.worst_maximum},
          {"medians_within_bound", errors.medians_within}};
}

nlohmann::json Json(const FitReport& report, size_t index) {
  const ColumnFit& fit = report.fits[index];
  HorovodModel model = fit.model;
  nlohmann::json parameters = nlohmann::json::object();
  for (const FitParameter& parameter : FitParameters()) {
    parameters[std::string(parameter.name)] = {
        {"value", parameter.of(model)}, {"fitted", IsFitted(fit, parameter)}};
  }
  nlohmann::json document = HowTested(fit);
  document["name"] = fit.column.name;
  document["ranks_per_node"] = fit.column.ranks_per_node;
  document["parameters"] = std::move(parameters);
  if (const std::optional<double> cores = CoresWorth(report, fit)) {
    document["cores_worth_of_a_rank"] = *cores;
  }
  if (!report.subsets.empty()) {
    nlohmann::json all = Json(report.subsets[index].all);
    all["rows"] = report.options.fit_nodes.size();
    all["bound"] = report.bound;
    all["that_tell_all_parameters"] = Json(report.subsets[index].complete);
    document["all_choices_of_rows"] = std::move(all);
  }
  return document;
}

nlohmann::json Json(const Prediction& prediction) {
  return {{"system", prediction.system},
          {"nodes", prediction.nodes},
          {"ranks", prediction.ranks},
          {"simulated_ranks", prediction.simulated_ranks},
          {"times_beyond_fitted", prediction.reach.factor},
          {"largest_error_measured_so_far_away",
           prediction.reach.tested_error.has_value()
               ? nlohmann::json(*prediction.reach.tested_error)
               : nlohmann::json()},
          {"strong_scaling",
           {{"steps", prediction.epoch.steps},
            {"epoch_seconds", prediction.epoch.seconds},
            {"times_as_fast_as_horovod", prediction.epoch_gain},
            {"speedup", prediction.speedup},
            {"efficiency", prediction.efficiency},
            {"exposed_share",
             prediction.epoch.exposed_seconds / prediction.epoch.seconds}}},
          {"weak_scaling",
           {{"step_seconds", prediction.full_step.step},
            {"times_as_fast_as_horovod", prediction.step_gain},
            {"computation_seconds", prediction.full_step.computation},
            {"communication_seconds", prediction.full_step.communication},
            {"batches", prediction.full_step.batches},
            {"efficiency", prediction.weak_efficiency},
            {"exposed_share",
             prediction.full_step.exposed / prediction.full_step.step}}}};
}

}  // namespace

std::string FitToJson(const FitReport& report) {
  nlohmann::json columns = nlohmann::json::array();
  for (size_t i = 0; i < report.fits.size(); ++i) {
    columns.push_back(Json(report, i));
  }
  const HorovodModel& model = report.options.model;
  const nlohmann::json document = {
      {"source", report.table.source},
      {"scaling", "strong"},
      {"images", report.table.images},
      {"batch_per_rank", report.table.batch_per_rank},
      {"fit_nodes", report.options.fit_nodes},
      {"gradients", model.training.gradients.name},
      {"gradient_bytes", model.training.gradients.total_bytes()},
      {"overlap", model.options.overlap},
      {"cycle_ms", model.options.cycle_ms},
      {"fusion_bytes", model.options.fusion_bytes},
      {"last_batch", model.last_batch == LastBatch::kFull ? "full" : "partial"},
      {"columns", std::move(columns)}};
  return document.dump(2) + "\n";
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
                         {"hvdlite", assumed.hvdlite},
                         {"added", assumed.added}}},
                       {"fit", HowTested(column.fit)},
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
