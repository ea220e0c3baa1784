// Reports for people.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "support/text_table.h"
#include "tools/scale_sim/epoch_reports.h"

namespace hvdlite::scale_sim {
namespace {

double ValueOf(const ColumnFit& fit, const FitParameter& parameter) {
  HorovodModel model = fit.model;
  return parameter.of(model);
}

using Cells = std::vector<std::string>;

std::string Percent(double part) { return absl::StrFormat("%.1f", 100 * part); }

// Values that were not fitted stand in brackets.
void PrintParameters(const FitReport& report, std::ostream& out) {
  Cells titles = {"column", "ranks per node"};
  for (const FitParameter& parameter : FitParameters()) {
    titles.emplace_back(parameter.name);
  }
  titles.insert(titles.end(), {"cores' worth", "median error %", "maximum %"});
  std::vector<Cells> rows;
  for (const ColumnFit& fit : report.fits) {
    Cells& row = rows.emplace_back(
        Cells{fit.column.name, absl::StrCat(fit.column.ranks_per_node)});
    for (const FitParameter& parameter : FitParameters()) {
      const double value = ValueOf(fit, parameter);
      row.push_back(IsFitted(fit, parameter) ? absl::StrFormat("%.4g", value)
                                             : absl::StrFormat("(%g)", value));
    }
    const std::optional<double> cores = CoresWorth(report, fit);
    row.push_back(cores.has_value() ? absl::StrFormat("%.1f", *cores) : "-");
    row.insert(row.end(), {Percent(fit.median_error), Percent(fit.max_error)});
  }
  out << support::TextTable(titles, rows, {.keys = 2});
}

void PrintPoints(const FitReport& report, std::ostream& out) {
  std::vector<Cells> rows;
  for (const ColumnFit& fit : report.fits) {
    for (const FittedPoint& point : fit.points) {
      rows.push_back({fit.column.name, absl::StrCat(point.nodes),
                      point.fitted ? "*" : "",
                      absl::StrFormat("%.2f", point.measured_seconds),
                      absl::StrFormat("%.2f", point.predicted_seconds),
                      absl::StrFormat("%+.1f", 100 * point.error())});
    }
  }
  out << "\n"
      << support::TextTable({"column", "nodes", "fitted", "measured s",
                             "predicted s", "error %"},
                            rows);
}

void PrintBeyond(const FitReport& report, std::ostream& out) {
  std::vector<Cells> rows;
  for (const ColumnFit& fit : report.fits) {
    for (const Extrapolation& one : fit.beyond) {
      rows.push_back({fit.column.name, absl::StrFormat("%g", one.factor),
                      Percent(one.max_error)});
    }
  }
  if (rows.empty()) return;
  out << "\nErrors of fits to the first rows alone, three or more, on more "
         "nodes than those, at most:\n\n"
      << support::TextTable({"column", "times as many nodes", "error %"}, rows);
}

void PrintSubsets(const FitReport& report, std::ostream& out) {
  if (report.subsets.empty()) return;
  std::vector<Cells> rows;
  const auto add = [&](const std::string& name, const std::string& choices,
                       const SubsetErrors& errors) {
    rows.push_back(
        {name, choices, absl::StrCat(errors.subsets),
         Percent(errors.median_of_medians), Percent(errors.worst_median),
         Percent(errors.median_of_maxima), Percent(errors.worst_maximum),
         absl::StrCat(errors.medians_within)});
  };
  for (size_t i = 0; i < report.fits.size(); ++i) {
    const std::string& name = report.fits[i].column.name;
    const Subsets& subsets = report.subsets[i];
    add(name, "all", subsets.all);
    if (subsets.complete.subsets < subsets.all.subsets) {
      add(name, "that tell all parameters", subsets.complete);
    }
  }
  out << absl::StrFormat(
             "\nAll choices of %d rows to fit, errors of the others in %%, and "
             "how many medians are within %.0f %%:\n\n",
             report.options.fit_nodes.size(), 100 * report.bound)
      << support::TextTable({"column", "choices", "number", "median of medians",
                             "worst median", "median of maxima",
                             "worst maximum", "medians within"},
                            rows, {.keys = 2});
}

void PrintAssumptions(const std::string& title,
                      const std::vector<std::string>& lines,
                      std::ostream& out) {
  if (lines.empty()) return;
  out << "\n" << title << ":\n";
  for (const std::string& line : lines) out << support::Wrapped(line, "- ");
}

void PrintReach(const ColumnPrediction& column, std::ostream& out) {
  const ColumnFit& fit = column.fit;
  if (fit.points.empty()) return;
  out << "\n"
      << support::Wrapped(absl::StrFormat(
             "How far these numbers were tested: the fit is to the rows of %s "
             "nodes; those of %s, which were measured, too, it predicts to "
             "%.1f %% (median), %.1f %% at most. Fits to fewer rows were off, "
             "on more nodes than those, by at most: %s. All this is of "
             "Horovod; of hvdlite nothing was measured there.",
             NodesText(fit, true), NodesText(fit, false),
             100 * fit.median_error, 100 * fit.max_error,
             BeyondText(fit).empty() ? "-" : BeyondText(fit)));
  int last = 0;
  for (const Prediction& prediction : column.predictions) {
    if (prediction.nodes == last) continue;
    last = prediction.nodes;
    out << support::Wrapped(
        ReachText(prediction.reach),
        absl::StrCat("- ", last, last == 1 ? " node: " : " nodes: "));
  }
}

}  // namespace

bool IsFitted(const ColumnFit& fit, const FitParameter& parameter) {
  return std::count(fit.parameters.begin(), fit.parameters.end(),
                    parameter.name) > 0;
}

std::string NodesText(const ColumnFit& fit, bool fitted) {
  std::vector<int> nodes;
  for (const FittedPoint& point : fit.points) {
    if (point.fitted == fitted) nodes.push_back(point.nodes);
  }
  return absl::StrJoin(nodes, ", ");
}

std::string BeyondText(const ColumnFit& fit) {
  return absl::StrJoin(fit.beyond, ", ",
                       [](std::string* out, const Extrapolation& one) {
                         absl::StrAppendFormat(out, "%g times %.1f %%",
                                               one.factor, 100 * one.max_error);
                       });
}

std::string ReachText(const Reach& reach) {
  if (reach.factor == 0) return "nothing was fitted";
  const std::string where =
      reach.factor <= 1
          ? "among the rows that were fitted"
          : absl::StrFormat("%.3g times beyond the rows that were fitted",
                            reach.factor);
  if (!reach.tested_error.has_value()) {
    return absl::StrCat(where, "; nothing was measured so far away");
  }
  return absl::StrFormat("%s; off by %.1f %% at most where that was measured",
                         where, 100 * *reach.tested_error);
}

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
  const EpochTable& table = report.table;
  out << support::Wrapped(absl::StrCat(
             "Strong scaling: an epoch of ", table.images, " images, up to ",
             table.world_batch > 0 ? table.world_batch : table.batch_per_rank,
             table.world_batch > 0 ? " of all ranks" : " per rank",
             " and step. ",
             table.ranks_stand_for_nodes ? "Nodes are ranks of one node. " : "",
             "Fitted to the rows of ",
             absl::StrJoin(report.options.fit_nodes, ", "),
             " nodes; errors are those of the other rows. Cores' worth: of "
             "a rank that is not alone on its node, at the speed of a core of "
             "the one that is. In brackets: not fitted."))
      << "\n";
  PrintParameters(report, out);
  PrintPoints(report, out);
  PrintBeyond(report, out);
  PrintSubsets(report, out);
}

void PrintPredictions(const PredictionReport& report, std::ostream& out) {
  for (const ColumnPrediction& column : report.columns) {
    const PredictionAssumptions assumed = AssumptionsOf(report, column.fit);
    out << "## " << column.fit.column.name << "\n";
    PrintAssumptions("Assumed of both systems", assumed.both, out);
    PrintAssumptions("Assumed of Horovod", assumed.horovod, out);
    PrintAssumptions("Assumed of hvdlite, at first with equal settings",
                     assumed.hvdlite, out);
    PrintAssumptions("Then added, each on top of those before it (--add)",
                     assumed.added, out);
    out << "\n"
        << support::Wrapped(absl::StrFormat(
               "Strong scaling: an epoch of %d images; then weak scaling: a "
               "step of %d images per node, whether or not the data set has as "
               "many. x: times as fast as Horovod; efficiencies are by one "
               "node of the same system.",
               report.table.images, report.table.batch_per_rank))
        << "\n";
    std::vector<Cells> strong;
    std::vector<Cells> weak;
    for (const Prediction& p : column.predictions) {
      const Cells keys = {absl::StrCat(p.nodes), p.system,
                          absl::StrCat(p.ranks)};
      strong.push_back(keys);
      strong.back().insert(
          strong.back().end(),
          {absl::StrCat(p.epoch.steps),
           absl::StrFormat("%.3g", p.epoch.seconds),
           absl::StrFormat("%.2f", p.epoch_gain),
           absl::StrFormat("%.1f", p.speedup), Percent(p.efficiency),
           Percent(p.epoch.exposed_seconds / p.epoch.seconds)});
      weak.push_back(keys);
      weak.back().insert(
          weak.back().end(),
          {absl::StrFormat("%.1f", 1e3 * p.full_step.step),
           absl::StrFormat("%.2f", p.step_gain), Percent(p.weak_efficiency),
           Percent(p.full_step.exposed / p.full_step.step)});
    }
    out << support::TextTable({"nodes", "system", "ranks", "steps", "epoch s",
                               "x", "speed-up", "efficiency %", "exposed %"},
                              strong)
        << "\n"
        << support::TextTable({"nodes", "system", "ranks", "step ms", "x",
                               "efficiency %", "exposed %"},
                              weak);
    PrintReach(column, out);
    out << "\n";
  }
}

}  // namespace hvdlite::scale_sim
