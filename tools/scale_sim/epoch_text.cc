// Reports for people.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/scale_sim/epoch_reports.h"

namespace hvdlite::scale_sim {
namespace {

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
  out << "\n|---|---|";
  for (size_t i = 0; i < FitParameters().size() + 3; ++i) out << "---|";
  out << "\n";
  for (const ColumnFit& fit : report.fits) {
    out << absl::StrFormat("| %s | %d |", fit.column.name,
                           fit.column.ranks_per_node);
    for (const FitParameter& parameter : FitParameters()) {
      const double value = ValueOf(fit, parameter);
      out << (IsFitted(fit, parameter) ? absl::StrFormat(" %.4g |", value)
                                       : absl::StrFormat(" (%g) |", value));
    }
    const std::optional<double> cores = CoresWorth(report, fit);
    out << (cores.has_value() ? absl::StrFormat(" %.1f |", *cores) : " - |");
    out << absl::StrFormat(" %.1f %% | %.1f %% |", 100 * fit.median_error,
                           100 * fit.max_error);
    out << "\n";
  }
}

void PrintPoints(const FitReport& report, std::ostream& out) {
  out << "\n| nodes |";
  for (const ColumnFit& fit : report.fits) {
    out << " " << fit.column.name << ": measured s | predicted s | error % |";
  }
  out << "\n|---|";
  for (size_t i = 0; i < report.fits.size(); ++i) out << "---|---|---|---|---|";
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

void PrintBeyond(const FitReport& report, std::ostream& out) {
  std::map<double, std::vector<std::string>> rows;
  for (const ColumnFit& fit : report.fits) {
    for (const Extrapolation& one : fit.beyond) {
      rows[one.factor].push_back(
          absl::StrFormat(" %.1f %% |", 100 * one.max_error));
    }
  }
  if (rows.empty()) return;
  out << "\nErrors of fits to the first rows alone, three or more, on more "
         "nodes "
         "than those, at most:\n\n| times as many nodes |";
  for (const ColumnFit& fit : report.fits) {
    out << " " << fit.column.name << " |";
  }
  out << "\n|---|";
  for (size_t i = 0; i < report.fits.size(); ++i) out << "---|";
  out << "\n";
  for (const auto& [factor, cells] : rows) {
    out << absl::StrFormat("| %g |", factor) << absl::StrJoin(cells, "")
        << "\n";
  }
}

void PrintSubsets(const FitReport& report, std::ostream& out) {
  if (report.subsets.empty()) return;
  out << absl::StrFormat(
      "\nAll choices of %d rows to fit, errors of the others:\n\n| column | "
      "choices | median of medians | worst median | median of maxima | worst "
      "maximum | medians within %.0f %% |\n|---|---|---|---|---|---|---|\n",
      report.options.fit_nodes.size(), 100 * report.bound);
  const auto line = [&](const std::string& name, const SubsetErrors& errors) {
    out << absl::StrFormat(
        "| %s | %d | %.1f %% | %.1f %% | %.1f %% | %.1f %% | %d |\n", name,
        errors.subsets, 100 * errors.median_of_medians,
        100 * errors.worst_median, 100 * errors.median_of_maxima,
        100 * errors.worst_maximum, errors.medians_within);
  };
  for (size_t i = 0; i < report.fits.size(); ++i) {
    const std::string& name = report.fits[i].column.name;
    const Subsets& subsets = report.subsets[i];
    line(name, subsets.all);
    if (subsets.complete.subsets < subsets.all.subsets) {
      line(absl::StrCat(name, ", that tell all parameters"), subsets.complete);
    }
  }
}

void PrintAssumptions(const std::string& title,
                      const std::vector<std::string>& lines,
                      std::ostream& out) {
  if (lines.empty()) return;
  out << "\n" << title << ":\n";
  for (const std::string& line : lines) out << "- " << line << "\n";
}

void PrintReach(const ColumnPrediction& column, std::ostream& out) {
  const ColumnFit& fit = column.fit;
  if (fit.points.empty()) return;
  out << absl::StrFormat(
      "\nHow far these numbers were tested: the fit is to the rows of %s "
      "nodes; "
      "those of %s, which were measured, too, it predicts to %.1f %% (median), "
      "%.1f %% at most. Fits to fewer rows were off, on more nodes than those, "
      "by at most: %s. All this is of Horovod; of hvdlite nothing was measured "
      "there.\n",
      NodesText(fit, true), NodesText(fit, false), 100 * fit.median_error,
      100 * fit.max_error, BeyondText(fit).empty() ? "-" : BeyondText(fit));
  int last = 0;
  for (const Prediction& prediction : column.predictions) {
    if (prediction.nodes == last) continue;
    last = prediction.nodes;
    out << "- " << last << (last == 1 ? " node: " : " nodes: ")
        << ReachText(prediction.reach) << "\n";
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
  out << "Strong scaling: an epoch of " << table.images << " images, up to "
      << (table.world_batch > 0 ? table.world_batch : table.batch_per_rank)
      << (table.world_batch > 0 ? " of all ranks" : " per rank")
      << " and step. "
      << (table.ranks_stand_for_nodes ? "Nodes are ranks of one node. " : "")
      << "Fitted to the rows of "
      << absl::StrJoin(report.options.fit_nodes, ", ")
      << " nodes (*); errors are those of the other rows.\n\n";
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
    out << absl::StrFormat(
        "\nStrong scaling: an epoch of %d images. Weak scaling: a step of %d "
        "images per node, whether or not the data set has as many. x: times as "
        "fast as Horovod; efficiencies are by one node of the same system.\n\n",
        report.table.images, report.table.batch_per_rank);
    out << "| nodes | system | ranks | strong: steps | epoch s | x | speed-up "
           "| "
           "efficiency % | exposed % | weak: step ms | x | efficiency % | "
           "exposed % "
           "|\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
    for (const Prediction& p : column.predictions) {
      out << absl::StrFormat(
          "| %d | %s | %d | %d | %.3g | %.2f | %.1f | %.1f | %.1f | %.1f | "
          "%.2f "
          "| %.1f | %.1f |\n",
          p.nodes, p.system, p.ranks, p.epoch.steps, p.epoch.seconds,
          p.epoch_gain, p.speedup, 100 * p.efficiency,
          100 * p.epoch.exposed_seconds / p.epoch.seconds,
          1e3 * p.full_step.step, p.step_gain, 100 * p.weak_efficiency,
          100 * p.full_step.exposed / p.full_step.step);
    }
    PrintReach(column, out);
    out << "\n";
  }
}

}  // namespace hvdlite::scale_sim
