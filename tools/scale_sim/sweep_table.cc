#include "tools/scale_sim/sweep_table.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/descriptor.h"
#include "base/status_macros.h"

namespace hvdlite::scale_sim {
namespace {

constexpr size_t kFewestPoints = 3;

// The cells of a line of RFC 4180 without line ends in cells.
std::vector<std::string> CellsOf(absl::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (quoted && line[i] == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += line[i++];
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      cells.emplace_back();
    } else if (line[i] != '\r') {
      cells.back() += line[i];
    }
  }
  return cells;
}

using Line = std::map<std::string, std::string>;  // a cell by its title

absl::StatusOr<std::vector<Line>> LinesOf(absl::string_view csv) {
  const std::vector<absl::string_view> lines =
      absl::StrSplit(csv, '\n', absl::SkipEmpty());
  const std::vector<std::string> titles =
      lines.empty() ? std::vector<std::string>() : CellsOf(lines.front());
  std::vector<std::string> missing;
  for (const char* title :
       {"setting", "mapping", "nodes", "ranks", "threads", "oversubscribed",
        "items_per_second_median", "epoch_seconds"}) {
    if (!std::count(titles.begin(), titles.end(), title)) {
      missing.emplace_back(title);
    }
  }
  if (!missing.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("lacks the columns ", absl::StrJoin(missing, ", "),
                     "; name the folder of a sweep, or its table.csv, which "
                     "scaling_sweep report writes again"));
  }
  std::vector<Line> found;
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> cells = CellsOf(lines[i]);
    if (cells.size() != titles.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", i + 1, " has ", cells.size(),
                       " cells, but there are ", titles.size(), " columns"));
    }
    Line& line = found.emplace_back();
    for (size_t j = 0; j < cells.size(); ++j) line[titles[j]] = cells[j];
  }
  return found;
}

struct Point {
  std::string series;
  int nodes = 0;
  int ranks = 0;
  int threads = 0;
  double items_per_second = 0;
  double epoch_seconds = 0;  // 0: not known
};

// Beyond these no world is: their product is an int, and times are above 0.
constexpr int kMostRanks = 1 << 20;
constexpr int kMostThreads = 1 << 10;
constexpr double kHighestSpeed = 1e15;

// nullopt for a row that has no speed, or is no scaling.
std::optional<Point> PointOf(const Line& line) {
  Point point;
  if (line.at("oversubscribed") == "yes" ||
      !absl::SimpleAtoi(line.at("nodes"), &point.nodes) || point.nodes < 1 ||
      !absl::SimpleAtoi(line.at("ranks"), &point.ranks) ||
      point.ranks < point.nodes || point.ranks > kMostRanks ||
      !absl::SimpleAtod(line.at("items_per_second_median"),
                        &point.items_per_second) ||
      !(point.items_per_second > 0 && point.items_per_second < kHighestSpeed)) {
    return std::nullopt;
  }
  (void)absl::SimpleAtod(line.at("epoch_seconds"), &point.epoch_seconds);
  std::vector<std::string> parts = {line.at("setting"), line.at("mapping")};
  if (absl::SimpleAtoi(line.at("threads"), &point.threads) &&
      point.threads < kMostThreads) {
    parts.push_back(absl::StrCat(point.threads,
                                 point.threads == 1 ? " thread" : " threads"));
  }
  parts.erase(std::remove(parts.begin(), parts.end(), ""), parts.end());
  point.series = absl::StrJoin(parts, ", ");
  return point;
}

// Of an epoch, which all rows imply alike.
absl::StatusOr<int> ItemsOf(const std::vector<Point>& points,
                            const SweepFacts& facts) {
  if (facts.items_per_epoch > 0) return facts.items_per_epoch;
  const double items =
      points.front().epoch_seconds * points.front().items_per_second;
  if (items >= 1 && items < 1e9) return static_cast<int>(std::lround(items));
  return absl::InvalidArgumentError(
      "does not say how many items an epoch has; give --items-per-epoch, or "
      "items_per_epoch in the sweep's SPEC");
}

// The N that all of `series` have.
std::vector<int> CommonN(
    const std::map<std::string, std::map<int, Point>>& series) {
  std::vector<int> common;
  for (const auto& [n, point] : series.begin()->second) {
    const bool everywhere = std::all_of(
        series.begin(), series.end(),
        [n = n](const auto& entry) { return entry.second.count(n) > 0; });
    if (everywhere) common.push_back(n);
  }
  return common;
}

}  // namespace

bool IsSweep(const std::string& path) {
  return absl::EndsWith(path, ".csv") || std::filesystem::is_directory(path);
}

absl::StatusOr<EpochTable> ParseSweepTable(absl::string_view csv,
                                           const SweepFacts& facts) {
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<Line> lines, LinesOf(csv));
  if ((facts.batch_per_rank > 0) == (facts.world_batch > 0)) {
    return absl::InvalidArgumentError(
        "does not say the batch: give --batch-per-rank, or --world-batch where "
        "it stays the same for all ranks together");
  }
  std::vector<Point> points;
  bool several_nodes = false;
  for (const Line& line : lines) {
    const std::optional<Point> point = PointOf(line);
    if (!point) continue;
    points.push_back(*point);
    several_nodes |= point->nodes > 1;
  }
  std::map<std::string, std::map<int, Point>> series;
  for (Point& point : points) {
    const int ranks_per_node = several_nodes ? point.ranks / point.nodes : 1;
    if (several_nodes) {
      absl::StrAppend(
          &point.series, point.series.empty() ? "" : ", ", ranks_per_node,
          ranks_per_node == 1 ? " rank per node" : " ranks per node");
    }
    series[point.series][several_nodes ? point.nodes : point.ranks] = point;
  }
  for (auto entry = series.begin(); entry != series.end();) {
    entry = entry->second.size() < kFewestPoints ? series.erase(entry)
                                                 : std::next(entry);
  }
  const std::vector<int> common =
      series.empty() ? std::vector<int>() : CommonN(series);
  if (common.size() < kFewestPoints) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has fewer than ", kFewestPoints,
        " numbers of nodes (or of ranks, on one node) of the same setting, "
        "mapping and threads of a rank; measure more of them, with the threads "
        "fixed (scaling_sweep run --threads 1, or threads: 1 in a SPEC)"));
  }
  EpochTable table;
  table.source = "scaling_sweep";
  HVDLITE_ASSIGN_OR_RETURN(table.images, ItemsOf(points, facts));
  table.batch_per_rank = std::max(facts.batch_per_rank, 1);
  table.world_batch = facts.world_batch;
  table.nodes = common;
  table.ranks_stand_for_nodes = !several_nodes;
  table.whole_epochs = false;
  for (const auto& [name, rows] : series) {
    EpochColumn& column = table.columns.emplace_back();
    column.name = name.empty() ? "measured" : name;
    for (const int n : common) {
      const Point& point = rows.at(n);
      if (several_nodes) column.ranks_per_node = point.ranks / point.nodes;
      table.cores_per_node =
          std::max({table.cores_per_node, 1,
                    column.ranks_per_node *
                        std::clamp(point.threads, 1, kMostThreads - 1)});
      column.epoch_seconds.push_back(table.images / point.items_per_second);
    }
  }
  return table;
}

absl::StatusOr<EpochTable> ReadSweepTable(const std::string& path,
                                          const SweepFacts& facts) {
  const std::string file =
      absl::EndsWith(path, ".csv")
          ? path
          : (std::filesystem::path(path) / "table.csv").string();
  const absl::StatusOr<std::string> text = base::ReadFile(file);
  if (!text.ok()) {
    return absl::NotFoundError(absl::StrCat(
        file, ": cannot be read; scaling_sweep report DIR writes it"));
  }
  absl::StatusOr<EpochTable> table = ParseSweepTable(*text, facts);
  if (table.ok()) return table;
  return absl::Status(table.status().code(),
                      absl::StrCat(file, ": ", table.status().message()));
}

}  // namespace hvdlite::scale_sim
