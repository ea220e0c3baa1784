#include "tools/scale_sim/fit_report.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/scale_sim/fit_parameters.h"

namespace hvdlite::scale_sim {
namespace {

bool Fitted(const ColumnFit& fit, absl::string_view parameter) {
  for (const std::string& name : fit.parameters) {
    if (name == parameter) return true;
  }
  return false;
}

double ValueOf(const ColumnFit& fit, const FitParameter& parameter) {
  HorovodModel model = fit.model;
  return parameter.of(model);
}

// Values that were not fitted stand in brackets.
void PrintParameters(const FitReport& report, std::ostream& out) {
  out << "| column | ranks per node |";
  for (const FitParameter& parameter : FitParameters()) {
    out << " " << parameter.name << " |";
  }
  out << " a rank's cores' worth | held out: median error | maximum |";
  if (!report.subsets.empty()) {
    out << absl::StrFormat(
        " all choices of %d rows: median of medians | worst median | medians "
        "within %.0f %% |",
        report.options.fit_nodes.size(), 100 * report.bound);
  }
  out << "\n|---|---|";
  for (size_t i = 0; i < FitParameters().size() + 3; ++i) out << "---|";
  if (!report.subsets.empty()) out << "---|---|---|";
  out << "\n";
  for (size_t i = 0; i < report.fits.size(); ++i) {
    const ColumnFit& fit = report.fits[i];
    out << absl::StrFormat("| %s | %d |", fit.column.name,
                           fit.column.ranks_per_node);
    for (const FitParameter& parameter : FitParameters()) {
      const double value = ValueOf(fit, parameter);
      out << (Fitted(fit, parameter.name) ? absl::StrFormat(" %.4g |", value)
                                          : absl::StrFormat(" (%g) |", value));
    }
    const std::optional<double> cores = CoresWorth(report, fit);
    out << (cores.has_value() ? absl::StrFormat(" %.1f |", *cores) : " - |");
    out << absl::StrFormat(" %.1f %% | %.1f %% |", 100 * fit.median_error,
                           100 * fit.max_error);
    if (!report.subsets.empty()) {
      const SubsetErrors& errors = report.subsets[i];
      out << absl::StrFormat(
          " %.1f %% | %.1f %% | %d of %d |", 100 * errors.median_of_medians,
          100 * errors.worst_median, errors.medians_within, errors.subsets);
    }
    out << "\n";
  }
}

void PrintPoints(const FitReport& report, std::ostream& out) {
  out << "\n| nodes |";
  for (const ColumnFit& fit : report.fits) {
    out << " " << fit.column.name << ": measured s | predicted s | error % |";
  }
  out << "\n|---|";
  for (size_t i = 0; i < report.fits.size(); ++i) out << "---|---|---|";
  out << "\n";
  for (size_t row = 0; row < report.table.nodes.size(); ++row) {
    out << "| " << report.table.nodes[row] << " |";
    for (const ColumnFit& fit : report.fits) {
      const FittedPoint& point = fit.points[row];
      out << absl::StrFormat(" %.2f | %.2f | %+.1f%s |", point.measured_seconds,
                             point.predicted_seconds, 100 * point.error(),
                             point.fitted ? "*" : "");
    }
    out << "\n";
  }
}

nlohmann::json Json(const FitReport& report, size_t index) {
  const ColumnFit& fit = report.fits[index];
  nlohmann::json parameters = nlohmann::json::object();
  for (const FitParameter& parameter : FitParameters()) {
    parameters[std::string(parameter.name)] = {
        {"value", ValueOf(fit, parameter)},
        {"fitted", Fitted(fit, parameter.name)}};
  }
  nlohmann::json points = nlohmann::json::array();
  for (const FittedPoint& point : fit.points) {
    points.push_back({{"nodes", point.nodes},
                      {"measured_seconds", point.measured_seconds},
                      {"predicted_seconds", point.predicted_seconds},
                      {"error", point.error()},
                      {"fitted", point.fitted}});
  }
  nlohmann::json document = {{"name", fit.column.name},
                             {"ranks_per_node", fit.column.ranks_per_node},
                             {"parameters", std::move(parameters)},
                             {"points", std::move(points)},
                             {"held_out_median_error", fit.median_error},
                             {"held_out_max_error", fit.max_error}};
  if (const std::optional<double> cores = CoresWorth(report, fit)) {
    document["cores_worth_of_a_rank"] = *cores;
  }
  if (!report.subsets.empty()) {
    const SubsetErrors& errors = report.subsets[index];
    document["all_choices_of_rows"] = {
        {"rows", report.options.fit_nodes.size()},
        {"choices", errors.subsets},
        {"median_of_median_errors", errors.median_of_medians},
        {"worst_median_error", errors.worst_median},
        {"bound", report.bound},
        {"medians_within_bound", errors.medians_within}};
  }
  return document;
}

}  // namespace

std::optional<double> CoresWorth(const FitReport& report,
                                 const ColumnFit& fit) {
  if (fit.column.ranks_per_node == 1) return std::nullopt;
  const std::string set_up =
      fit.column.name.substr(0, fit.column.name.find('/'));
  for (const ColumnFit& other : report.fits) {
    if (other.column.ranks_per_node == 1 &&
        other.column.name.substr(0, other.column.name.find('/')) == set_up) {
      return report.table.cores_per_node *
             other.model.training.compute.image_ms /
             fit.model.training.compute.image_ms;
    }
  }
  return std::nullopt;
}

void PrintFit(const FitReport& report, std::ostream& out) {
  out << "Strong scaling: an epoch of " << report.table.images << " images, up "
      << "to " << report.table.batch_per_rank
      << " per rank and step. Fitted to the rows of "
      << absl::StrJoin(report.options.fit_nodes, ", ")
      << " nodes (*); errors are those of the other rows.\n\n";
  PrintParameters(report, out);
  PrintPoints(report, out);
}

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

}  // namespace hvdlite::scale_sim
