// Rows of the HTML page's time axis, with levels of detail, so that a browser
// draws a million slices by looking at some thousand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "timeline/read/trace_reader.h"

namespace hvdlite::timeline_viewer {

// A node of a level stands for so many of the level below it, or slices.
inline constexpr size_t kNodeChildren = 16;
// Slices that are nested deeper, or overlap more, share the last row.
inline constexpr size_t kMostDepths = 24;

// Slices that follow one another on a row, seen from afar.
struct LevelNode {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t busy_ns = 0;  // sum of their durations
  size_t name = 0;      // that took most of it; index in Trace::names
};

// Slices of a lane at one depth of nesting. But for the last depth they do not
// overlap.
struct PageRow {
  int64_t pid = 0;
  int64_t tid = 0;
  size_t depth = 0;
  std::vector<size_t> slices;  // indices in Trace::slices, by start
  // The finest first, the last has at most kNodeChildren nodes. None if there
  // are no more slices than that.
  std::vector<std::vector<LevelNode>> levels;
};

// All slices of `trace`, by process, lane (steps and application first, tensors
// last) and depth.
std::vector<PageRow> MakePageRows(const timeline::Trace& trace);

// Counters of one process that have a unit in common, as lines of a chart.
struct PageChart {
  struct Line {
    std::string name;
    std::vector<int64_t> times_ns;
    std::vector<double> values;
  };
  int64_t pid = 0;
  std::string label;
  std::string unit;
  std::vector<Line> lines;
};

// Those of hvdlite's ranks as rates, such as the share of a core that a thread
// waited for one; others as they are. By process.
std::vector<PageChart> MakePageCharts(const timeline::Trace& trace);

}  // namespace hvdlite::timeline_viewer
