#include "tools/scale_sim/fit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/statistics.h"

namespace hvdlite::scale_sim {
namespace {

// centre + factor * (point - centre).
std::vector<double> Along(const std::vector<double>& centre,
                          const std::vector<double>& point, double factor) {
  std::vector<double> result(centre.size());
  for (size_t i = 0; i < centre.size(); ++i) {
    result[i] = centre[i] + factor * (point[i] - centre[i]);
  }
  return result;
}

// Of all but the last.
std::vector<double> Centre(const std::vector<Minimum>& simplex) {
  std::vector<double> centre(simplex.front().point.size(), 0);
  for (size_t vertex = 0; vertex + 1 < simplex.size(); ++vertex) {
    for (size_t i = 0; i < centre.size(); ++i) {
      centre[i] +=
          simplex[vertex].point[i] / static_cast<double>(simplex.size() - 1);
    }
  }
  return centre;
}

absl::Status CheckFitNodes(const EpochTable& table,
                           const std::vector<int>& fit_nodes) {
  if (table.nodes.size() < 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the table has a single row, of ", table.nodes.front(),
        table.nodes.front() == 1 ? " node" : " nodes",
        "; a fit takes two or more: some to fit, and one to predict"));
  }
  std::set<int> seen;
  for (const int nodes : fit_nodes) {
    if (!std::count(table.nodes.begin(), table.nodes.end(), nodes)) {
      return absl::InvalidArgumentError(
          absl::StrCat("fit nodes: the table has no row for ", nodes,
                       " nodes; it has ", absl::StrJoin(table.nodes, ", ")));
    }
    if (!seen.insert(nodes).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("fit nodes: ", nodes, " is named twice"));
    }
  }
  if (seen.empty()) {
    return absl::InvalidArgumentError("fit nodes: name at least one");
  }
  if (seen.size() == table.nodes.size()) {
    return absl::InvalidArgumentError(
        "fit nodes: all rows are fitted, and none is left to predict; leave "
        "some out");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<const FitParameter*>> ChooseParameters(
    const EpochColumn& column, const FitOptions& options) {
  const int fewest_ranks =
      column.ranks_per_node *
      *std::min_element(options.fit_nodes.begin(), options.fit_nodes.end());
  std::vector<const FitParameter*> chosen;
  for (const std::string& name : options.parameters) {
    const FitParameter* const parameter = FindFitParameter(name);
    if (parameter == nullptr) {
      std::vector<absl::string_view> known;
      for (const FitParameter& other : FitParameters()) {
        known.push_back(other.name);
      }
      return absl::InvalidArgumentError(
          absl::StrCat("parameters: there is no '", name, "'; known are ",
                       absl::StrJoin(known, ", ")));
    }
    if (std::count(chosen.begin(), chosen.end(), parameter)) {
      return absl::InvalidArgumentError(
          absl::StrCat("parameters: '", name, "' is named twice"));
    }
    if (name == "starved-share" && fewest_ranks > 1) continue;
    if (chosen.size() < options.fit_nodes.size()) chosen.push_back(parameter);
  }
  return chosen;
}

// Searches the parameters for the smallest sum of squares of what `residuals`
// returns.
void Search(const std::vector<const FitParameter*>& parameters,
            HorovodModel& model,
            const std::function<double(const HorovodModel&)>& squares) {
  if (parameters.empty()) return;
  const auto set = [&](const std::vector<double>& point) {
    for (size_t i = 0; i < parameters.size(); ++i) {
      parameters[i]->of(model) = std::clamp(
          std::exp(point[i]), parameters[i]->lower, parameters[i]->upper);
    }
  };
  const auto value = [&](const std::vector<double>& point) {
    set(point);
    return squares(model);
  };
  std::vector<double> start;
  for (const FitParameter* parameter : parameters) {
    start.push_back(std::log(parameter->start));
  }
  constexpr double kTolerance = 1e-16;
  constexpr int kIterations = 2000;
  std::optional<Minimum> best;
  for (const double edge : {0.3, 1.0, -1.0, 2.5}) {
    Minimum minimum = NelderMead(value, start, edge, kTolerance, kIterations);
    // A simplex may have collapsed away from a minimum.
    minimum = NelderMead(value, minimum.point, 0.1, kTolerance, kIterations);
    if (!best.has_value() || minimum.value < best->value) {
      best = std::move(minimum);
    }
  }
  set(best->point);
}

// FitColumn() without `beyond`.
absl::StatusOr<ColumnFit> FitRows(const EpochTable& table,
                                  const EpochColumn& column,
                                  const FitOptions& options) {
  if (const absl::Status status = CheckFitNodes(table, options.fit_nodes);
      !status.ok()) {
    return status;
  }
  const absl::StatusOr<std::vector<const FitParameter*>> parameters =
      ChooseParameters(column, options);
  if (!parameters.ok()) return parameters.status();

  ColumnFit fit;
  fit.column = column;
  fit.model = options.model;
  fit.model.training.allreduce.ranks_per_node = column.ranks_per_node;
  for (const FitParameter* parameter : *parameters) {
    fit.parameters.emplace_back(parameter->name);
  }
  for (size_t row = 0; row < table.nodes.size(); ++row) {
    const bool fitted =
        std::count(options.fit_nodes.begin(), options.fit_nodes.end(),
                   table.nodes[row]) > 0;
    fit.points.push_back({.nodes = table.nodes[row],
                          .measured_seconds = column.epoch_seconds[row],
                          .fitted = fitted});
  }
  const auto seconds = [&](const HorovodModel& model, int nodes) {
    return HorovodEpoch(model, table.images,
                        table.BatchOfRank(nodes * column.ranks_per_node),
                        nodes * column.ranks_per_node)
        .seconds;
  };
  Search(*parameters, fit.model, [&](const HorovodModel& model) {
    double sum = 0;
    for (const FittedPoint& point : fit.points) {
      if (!point.fitted) continue;
      const double residual =
          std::log(seconds(model, point.nodes) / point.measured_seconds);
      sum += residual * residual;
    }
    return sum;
  });
  std::vector<double> held_out;
  for (FittedPoint& point : fit.points) {
    point.predicted_seconds = seconds(fit.model, point.nodes);
    if (!point.fitted) held_out.push_back(std::abs(point.error()));
  }
  fit.median_error = support::Median(held_out);
  fit.max_error = *std::max_element(held_out.begin(), held_out.end());
  return fit;
}

constexpr size_t kFewestRowsToExtrapolate = 3;

absl::StatusOr<std::vector<Extrapolation>> ErrorsBeyond(
    const EpochTable& table, const EpochColumn& column, FitOptions options) {
  std::map<double, Extrapolation> found;
  for (size_t rows = kFewestRowsToExtrapolate; rows < table.nodes.size();
       ++rows) {
    options.fit_nodes.assign(table.nodes.begin(),
                             table.nodes.begin() + static_cast<long>(rows));
    const absl::StatusOr<ColumnFit> fit = FitRows(table, column, options);
    if (!fit.ok()) return fit.status();
    for (size_t row = rows; row < table.nodes.size(); ++row) {
      const double factor = static_cast<double>(table.nodes[row]) /
                            static_cast<double>(options.fit_nodes.back());
      Extrapolation& one = found[factor];
      one.factor = factor;
      one.max_error =
          std::max(one.max_error, std::abs(fit->points[row].error()));
      ++one.rows;
    }
  }
  std::vector<Extrapolation> beyond;
  for (const auto& [factor, one] : found) beyond.push_back(one);
  return beyond;
}

constexpr size_t kFewestRowsForEveryOther = 6;

}  // namespace

std::vector<int> DefaultFitNodes(const EpochTable& table) {
  const size_t last = table.nodes.size() - 1;
  const size_t step = table.nodes.size() < kFewestRowsForEveryOther ? 1 : 2;
  std::vector<int> nodes;
  for (size_t row = 0; row < last; row += step) {
    nodes.push_back(table.nodes[row]);
  }
  return nodes;
}

Reach ReachOf(const ColumnFit& fit, int nodes) {
  Reach reach;
  int most = 0;
  for (const FittedPoint& point : fit.points) {
    if (point.fitted) most = std::max(most, point.nodes);
  }
  if (most == 0) return reach;
  reach.factor = static_cast<double>(nodes) / most;
  if (nodes <= most) {
    for (const FittedPoint& point : fit.points) {
      if (point.fitted || point.nodes > most) continue;
      reach.tested_error =
          std::max(reach.tested_error.value_or(0), std::abs(point.error()));
    }
    return reach;
  }
  for (const Extrapolation& one : fit.beyond) {
    if (one.factor < reach.factor) continue;
    reach.tested_error = one.max_error;
    break;
  }
  return reach;
}

const std::vector<FitParameter>& FitParameters() {
  static const auto* const parameters = new std::vector<FitParameter>{
      {.name = "image-ms",
       .start = 10,
       .lower = 1e-6,
       .upper = 1e6,
       .of = [](HorovodModel& model) -> double& {
         return model.training.compute.image_ms;
       }},
      {.name = "starved-share",
       .start = 0.1,
       .lower = 1e-4,
       .upper = 0.95,
       .of = [](HorovodModel& model) -> double& {
         return model.training.compute.starved_share;
       }},
      {.name = "software-ns-per-byte",
       .start = 1,
       .lower = 1e-4,
       .upper = 1e4,
       .of = [](HorovodModel& model) -> double& {
         return model.training.allreduce.software_ns_per_byte;
       }},
      {.name = "first-batch-share",
       .start = 0.3,
       .lower = 1e-4,
       .upper = 1e3,
       .of = [](HorovodModel& model) -> double& {
         return model.training.compute.first_batch_share;
       }},
      {.name = "jitter",
       .start = 0.01,
       .lower = 1e-6,
       .upper = 10,
       .of = [](HorovodModel& model) -> double& {
         return model.training.compute.jitter;
       }},
  };
  return *parameters;
}

const FitParameter* FindFitParameter(absl::string_view name) {
  for (const FitParameter& parameter : FitParameters()) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

Minimum NelderMead(
    const std::function<double(const std::vector<double>&)>& function,
    const std::vector<double>& start, double edge, double tolerance,
    int iterations) {
  const auto at = [&](std::vector<double> point) {
    const double value = function(point);
    return Minimum{.point = std::move(point), .value = value};
  };
  std::vector<Minimum> simplex = {at(start)};
  for (size_t i = 0; i < start.size(); ++i) {
    std::vector<double> point = start;
    point[i] += edge;
    simplex.push_back(at(std::move(point)));
  }
  const auto by_value = [](const Minimum& a, const Minimum& b) {
    return a.value < b.value;
  };
  for (int iteration = 0; iteration < iterations; ++iteration) {
    std::stable_sort(simplex.begin(), simplex.end(), by_value);
    Minimum& worst = simplex.back();
    if (worst.value - simplex.front().value < tolerance) break;
    const std::vector<double> centre = Centre(simplex);
    Minimum reflected = at(Along(centre, worst.point, -1));
    if (reflected.value < simplex.front().value) {
      Minimum expanded = at(Along(centre, worst.point, -2));
      worst =
          std::move(expanded.value < reflected.value ? expanded : reflected);
      continue;
    }
    if (reflected.value < simplex[simplex.size() - 2].value) {
      worst = std::move(reflected);
      continue;
    }
    if (reflected.value < worst.value) worst = std::move(reflected);
    Minimum contracted = at(Along(centre, worst.point, 0.5));
    if (contracted.value < worst.value) {
      worst = std::move(contracted);
      continue;
    }
    for (size_t vertex = 1; vertex < simplex.size(); ++vertex) {
      simplex[vertex] =
          at(Along(simplex.front().point, simplex[vertex].point, 0.5));
    }
  }
  return *std::min_element(simplex.begin(), simplex.end(), by_value);
}

absl::StatusOr<ColumnFit> FitColumn(const EpochTable& table,
                                    const EpochColumn& column,
                                    const FitOptions& options) {
  absl::StatusOr<ColumnFit> fit = FitRows(table, column, options);
  if (!fit.ok()) return fit.status();
  absl::StatusOr<std::vector<Extrapolation>> beyond =
      ErrorsBeyond(table, column, options);
  if (!beyond.ok()) return beyond.status();
  fit->beyond = *std::move(beyond);
  return fit;
}

namespace {

SubsetErrors Summary(const std::vector<ColumnFit>& fits, size_t parameters,
                     double bound) {
  SubsetErrors errors;
  std::vector<double> medians;
  std::vector<double> maxima;
  for (const ColumnFit& fit : fits) {
    if (fit.parameters.size() < parameters) continue;
    medians.push_back(fit.median_error);
    maxima.push_back(fit.max_error);
    if (fit.median_error <= bound) ++errors.medians_within;
    ++errors.subsets;
  }
  errors.worst_median = *std::max_element(medians.begin(), medians.end());
  errors.worst_maximum = *std::max_element(maxima.begin(), maxima.end());
  errors.median_of_medians = support::Median(std::move(medians));
  errors.median_of_maxima = support::Median(std::move(maxima));
  return errors;
}

}  // namespace

absl::StatusOr<Subsets> ErrorsOfSubsets(const EpochTable& table,
                                        const EpochColumn& column,
                                        FitOptions options, int size,
                                        double bound,
                                        const std::function<void()>& on_fit) {
  const auto rows = static_cast<int>(table.nodes.size());
  if (size < 1 || size >= rows) {
    return absl::InvalidArgumentError(absl::StrCat(
        "subsets must have 1 to ", rows - 1, " rows, but have ", size));
  }
  std::vector<ColumnFit> fits;
  size_t parameters = 0;
  // The first `size` rows, then every other choice of as many.
  std::vector<bool> chosen(rows, false);
  std::fill(chosen.begin(), chosen.begin() + size, true);
  do {
    options.fit_nodes.clear();
    for (int row = 0; row < rows; ++row) {
      if (chosen[row]) options.fit_nodes.push_back(table.nodes[row]);
    }
    absl::StatusOr<ColumnFit> fit = FitRows(table, column, options);
    if (!fit.ok()) return fit.status();
    parameters = std::max(parameters, fit->parameters.size());
    fits.push_back(*std::move(fit));
    if (on_fit) on_fit();
  } while (std::prev_permutation(chosen.begin(), chosen.end()));
  return Subsets{.all = Summary(fits, 0, bound),
                 .complete = Summary(fits, parameters, bound)};
}

}  // namespace hvdlite::scale_sim
