// Rows of the HTML page's time axis. They have levels of detail, so that a
// browser reads some thousand nodes to draw a million slices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "timeline/read/trace_reader.h"

namespace hvdlite::timeline_viewer {

// The number of nodes of the level below, or of slices, that a node replaces.
inline constexpr size_t kNodeChildren = 16;
// Slices that are nested deeper, or overlap more, share the last row.
inline constexpr size_t kMostDepths = 24;

// A node of a level: consecutive slices of a row, drawn as one.
struct LevelNode {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int64_t busy_ns = 0;  // sum of the durations
  size_t name = 0;      // name that takes most of it; index in Trace::names
};

// Slices of a track at one depth of nesting. They do not overlap, except at the
// last depth.
struct PageRow {
  int64_t pid = 0;
  int64_t tid = 0;
  size_t depth = 0;
  std::vector<size_t> slices;  // indices in Trace::slices, by start
  // Levels of detail, the finest first; the last has at most kNodeChildren
  // nodes. Empty if the row has at most that many slices.
  std::vector<std::vector<LevelNode>> levels;
};

// Returns all slices of `trace`, by process, track (steps and application
// first, tensors last) and depth.
std::vector<PageRow> MakePageRows(const timeline::Trace& trace);

// Counters of one process with a common unit, as lines of a chart.
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

// Returns the charts by process. Counters of hvdlite's ranks become rates, such
// as the part of the time in which a thread waited for a core. Others are
// unchanged.
std::vector<PageChart> MakePageCharts(const timeline::Trace& trace);

}  // namespace hvdlite::timeline_viewer
