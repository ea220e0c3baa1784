#include "tools/scaling_sweep/report/scaling_charts.h"

#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"

namespace hvdlite::scaling_sweep {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

using Group = std::vector<size_t>;

// A curve of `value_of(row)`; its error bars stretch as those of items/s do.
template <typename ValueOf>
base::Curve CurveOf(const ScalingTable& table, const Group& group,
                    const ValueOf& value_of) {
  base::Curve curve = {.name = SeriesName(table, table.rows[group.front()]),
                       .values = {}};
  for (const size_t index : group) {
    const Row& row = table.rows[index];
    const double value = value_of(row);
    curve.x.push_back(row.n);
    curve.values.push_back(value);
    const double scale = value / *row.items_per_second;
    curve.low.push_back(row.interval ? row.interval->low * scale : kNone);
    curve.high.push_back(row.interval ? row.interval->high * scale : kNone);
  }
  return curve;
}

template <typename IdealOf>
base::Curve Ideal(const std::set<double>& all_n, const IdealOf& ideal_of) {
  base::Curve curve = {.name = "ideal", .values = {}};
  for (const double n : all_n) {
    curve.x.push_back(n);
    curve.values.push_back(ideal_of(n));
  }
  curve.dashed = true;
  return curve;
}

}  // namespace

std::vector<std::pair<std::string, base::Chart>> ScalingCharts(
    const ScalingTable& table) {
  std::vector<Group> groups;
  std::set<double> all_n;
  bool same_base = true;
  for (Group& group : table.Groups()) {
    if (group.size() < 2) continue;
    for (const size_t index : group) all_n.insert(table.rows[index].n);
    groups.push_back(std::move(group));
    same_base &= table.rows[groups.back().front()].n ==
                 table.rows[groups.front().front()].n;
  }
  if (groups.empty()) return {};

  const std::string x_label = CountedName(table.counted);
  base::Chart speed = {.title = "Items/s",
                       .x_label = x_label,
                       .curves = {},
                       .log2_x = true,
                       .log2_y = true};
  base::Chart speed_up = speed;
  speed_up.title = absl::StrCat(
      "Speed-up (", table.scaling == STRONG ? "strong: T1/TN" : "weak: N*T1/TN",
      ")");
  base::Chart efficiency = {
      .title = absl::StrCat("Efficiency, % (", table.EfficiencyTitle(), ")"),
      .x_label = x_label,
      .curves = {},
      .log2_x = true,
      .y_from_zero = true};
  for (const Group& group : groups) {
    speed.curves.push_back(CurveOf(
        table, group, [](const Row& row) { return *row.items_per_second; }));
    speed_up.curves.push_back(
        CurveOf(table, group, [](const Row& row) { return *row.speed_up; }));
    efficiency.curves.push_back(CurveOf(
        table, group, [](const Row& row) { return 100 * *row.efficiency; }));
  }
  // Of the group that is the fastest per N.
  double per_n = 0;
  for (const Group& group : groups) {
    const Row& base = table.rows[group.front()];
    per_n = std::max(per_n, *base.items_per_second / base.n);
  }
  speed.curves.push_back(Ideal(all_n, [per_n](double n) { return per_n * n; }));
  if (same_base) {
    const double base_n = *all_n.begin();
    speed_up.curves.push_back(
        Ideal(all_n, [base_n](double n) { return n / base_n; }));
  }
  efficiency.curves.push_back(Ideal(all_n, [](double) { return 100.0; }));
  return {{"items_per_second.svg", speed},
          {"speed_up.svg", speed_up},
          {"efficiency.svg", efficiency}};
}

}  // namespace hvdlite::scaling_sweep
