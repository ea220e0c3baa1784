#include "tools/scale_sim/epoch_pages.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "support/html_page.h"

namespace hvdlite::scale_sim {
namespace {

using support::Chart;
using support::Curve;
using support::Properties;

std::string PercentText(double share) {
  return absl::StrFormat("%.1f %%", 100 * share);
}

// Which rows were fitted, and how far off the fit is.
void AddHowTested(const ColumnFit& fit, Properties& properties) {
  if (fit.points.empty()) return;
  properties.emplace_back("fitted to", NodesText(fit, true));
  properties.emplace_back(
      absl::StrCat("error of ", NodesText(fit, false)),
      absl::StrCat("median ", PercentText(fit.median_error), ", at most ",
                   PercentText(fit.max_error)));
  if (fit.beyond.empty()) return;
  properties.emplace_back("at most, on so many times the rows that were fitted",
                          BeyondText(fit));
}

Properties PropertiesOf(const ColumnFit& fit) {
  Properties properties;
  for (const std::string& name : fit.parameters) {
    HorovodModel model = fit.model;
    properties.emplace_back(
        name, absl::StrFormat("%.4g", FindFitParameter(name)->of(model)));
  }
  AddHowTested(fit, properties);
  return properties;
}

Properties PropertiesOf(const ColumnPrediction& column) {
  Properties properties;
  AddHowTested(column.fit, properties);
  for (const Prediction& prediction : column.predictions) {
    const std::string nodes = absl::StrCat(prediction.nodes, " nodes");
    if (!properties.empty() && properties.back().first == nodes) continue;
    properties.emplace_back(nodes, ReachText(prediction.reach));
  }
  return properties;
}

Curve MeasuredCurve(const ColumnFit& fit) {
  Curve curve = {.name = "measured", .values = {}};
  for (const FittedPoint& point : fit.points) {
    curve.x.push_back(point.nodes);
    curve.values.push_back(point.measured_seconds);
  }
  return curve;
}

// A curve for each system, in their order.
Chart PredictionChart(const ColumnPrediction& column, const std::string& title,
                      const std::string& y_label,
                      double (*value)(const Prediction&)) {
  Chart chart = {.title = absl::StrCat(column.fit.column.name, ": ", title),
                 .x_label = "nodes",
                 .y_label = y_label,
                 .curves = {},
                 .log_x = true};
  for (const Prediction& prediction : column.predictions) {
    auto curve = std::find_if(
        chart.curves.begin(), chart.curves.end(),
        [&](const Curve& one) { return one.name == prediction.system; });
    if (curve == chart.curves.end()) {
      chart.curves.push_back({.name = prediction.system, .values = {}});
      curve = chart.curves.end() - 1;
    }
    curve->x.push_back(prediction.nodes);
    curve->values.push_back(value(prediction));
  }
  return chart;
}

}  // namespace

std::string FitPage(const FitReport& report) {
  std::string body =
      absl::StrCat("<p>", support::EscapeHtml(report.table.source), "</p>\n");
  for (const ColumnFit& fit : report.fits) {
    const Curve measured = MeasuredCurve(fit);
    Curve predicted = {.name = "model", .values = {}, .dashed = true};
    for (const FittedPoint& point : fit.points) {
      predicted.x.push_back(point.nodes);
      predicted.values.push_back(point.predicted_seconds);
    }
    const bool ranks = report.table.ranks_stand_for_nodes;
    absl::StrAppend(&body,
                    support::ChartSection({.title = fit.column.name,
                                           .x_label = ranks ? "ranks" : "nodes",
                                           .y_label = "s per epoch",
                                           .curves = {measured, predicted},
                                           .log_x = true,
                                           .log_y = true}),
                    support::PropertyTable("", PropertiesOf(fit)));
  }
  return support::HtmlPage("Epochs, measured and fitted", body);
}

std::string PredictionsPage(const PredictionReport& report) {
  std::string body;
  for (const ColumnPrediction& column : report.columns) {
    Chart seconds = PredictionChart(
        column, "an epoch, strong scaling", "s per epoch",
        [](const Prediction& prediction) { return prediction.epoch.seconds; });
    seconds.log_y = true;
    if (!column.fit.points.empty()) {
      seconds.curves.insert(seconds.curves.begin(), MeasuredCurve(column.fit));
    }
    Chart efficiency =
        PredictionChart(column, "a step, weak scaling", "efficiency, %",
                        [](const Prediction& prediction) {
                          return 100 * prediction.weak_efficiency;
                        });
    efficiency.y_from_zero = true;
    absl::StrAppend(&body, support::ChartSection(seconds),
                    support::ChartSection(efficiency),
                    support::PropertyTable("", PropertiesOf(column)));
  }
  return support::HtmlPage("Predictions", body);
}

std::string NegotiationPage(const std::vector<Row>& rows) {
  std::map<std::string, Curve> curves;
  for (const Row& row : rows) {
    const std::string name =
        row.simulated ? absl::StrCat(row.topology, " of arity ", row.arity)
                      : row.topology;
    Curve& curve = curves[name];
    curve.name = name;
    curve.x.push_back(row.ranks);
    curve.values.push_back(row.batch_latency_us.max);
  }
  Chart chart = {.title = "Batch latency, at most",
                 .x_label = "ranks",
                 .y_label = "us",
                 .curves = {},
                 .log_x = true,
                 .log_y = true};
  for (auto& [name, curve] : curves) chart.curves.push_back(std::move(curve));
  return support::HtmlPage("Negotiation", support::ChartSection(chart));
}

}  // namespace hvdlite::scale_sim
