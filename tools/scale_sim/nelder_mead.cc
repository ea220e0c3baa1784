#include "tools/scale_sim/nelder_mead.h"

#include <algorithm>
#include <cstddef>
#include <utility>

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

}  // namespace

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

}  // namespace hvdlite::scale_sim
