#include "tools/timeline_viewer/page_rows.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/strings/string_view.h"
#include "timeline/record/trace_event.h"

namespace hvdlite::timeline_viewer {
namespace {

using timeline::Trace;
using timeline::TraceCounter;
using timeline::TraceSlice;

// The position of a track among the tracks of its rank.
int64_t TrackOrder(const Trace& trace, int64_t pid, int64_t tid) {
  if (!trace.processes.at(pid).is_rank) return tid;
  switch (tid) {
    case timeline::kStepTrack:
      return -4;
    case timeline::kUserTrack:
      return -3;
    case timeline::kBucketTrack:
      return -2;
    case timeline::kChunkTrack:
      return -1;
    default:
      return tid;
  }
}

// The name that takes most of the time of slices [begin, end). If several take
// the same, the one that occurs first.
size_t MainName(const Trace& trace, const std::vector<size_t>& slices,
                size_t begin, size_t end) {
  std::map<size_t, std::pair<int64_t, size_t>> times;  // time and first place
  for (size_t i = begin; i < end; ++i) {
    const TraceSlice& slice = trace.slices[slices[i]];
    auto& [ns, place] =
        times.try_emplace(slice.name, std::pair<int64_t, size_t>(0, i))
            .first->second;
    ns += slice.duration_ns;
  }
  return std::max_element(times.begin(), times.end(),
                          [](const auto& a, const auto& b) {
                            return std::tie(a.second.first, b.second.second) <
                                   std::tie(b.second.first, a.second.second);
                          })
      ->first;
}

std::vector<LevelNode> FinestLevel(const Trace& trace,
                                   const std::vector<size_t>& slices) {
  std::vector<LevelNode> level;
  for (size_t begin = 0; begin < slices.size(); begin += kNodeChildren) {
    const size_t end = std::min(slices.size(), begin + kNodeChildren);
    LevelNode node = {.start_ns = trace.slices[slices[begin]].start_ns,
                      .end_ns = trace.slices[slices[begin]].end_ns(),
                      .busy_ns = 0,
                      .name = MainName(trace, slices, begin, end)};
    for (size_t i = begin; i < end; ++i) {
      node.end_ns = std::max(node.end_ns, trace.slices[slices[i]].end_ns());
      node.busy_ns += trace.slices[slices[i]].duration_ns;
    }
    level.push_back(node);
  }
  return level;
}

std::vector<LevelNode> LevelAbove(const Trace& trace,
                                  const std::vector<size_t>& slices,
                                  const std::vector<LevelNode>& below,
                                  size_t slices_per_node) {
  std::vector<LevelNode> level;
  for (size_t begin = 0; begin < below.size(); begin += kNodeChildren) {
    const size_t end = std::min(below.size(), begin + kNodeChildren);
    LevelNode node = below[begin];
    for (size_t i = begin + 1; i < end; ++i) {
      node.end_ns = std::max(node.end_ns, below[i].end_ns);
      node.busy_ns += below[i].busy_ns;
    }
    const size_t first = level.size() * slices_per_node;
    node.name = MainName(trace, slices, first,
                         std::min(slices.size(), first + slices_per_node));
    level.push_back(node);
  }
  return level;
}

void AddLevels(const Trace& trace, PageRow* row) {
  if (row->slices.size() <= kNodeChildren) return;
  size_t slices_per_node = kNodeChildren;
  row->levels.push_back(FinestLevel(trace, row->slices));
  while (row->levels.back().size() > kNodeChildren) {
    slices_per_node *= kNodeChildren;
    row->levels.push_back(
        LevelAbove(trace, row->slices, row->levels.back(), slices_per_node));
  }
}

// Puts the slices of one track on as few rows as possible without overlap. A
// nested slice is below the slice that contains it.
void AddRowsOfTrack(const Trace& trace, std::vector<size_t> slices,
                    std::vector<PageRow>* rows) {
  std::stable_sort(slices.begin(), slices.end(), [&](size_t a, size_t b) {
    const TraceSlice& left = trace.slices[a];
    const TraceSlice& right = trace.slices[b];
    return std::tie(left.start_ns, right.duration_ns) <
           std::tie(right.start_ns, left.duration_ns);
  });
  const size_t first_row = rows->size();
  std::vector<int64_t> ends_ns;  // end of the last slice of each row
  for (const size_t index : slices) {
    const TraceSlice& slice = trace.slices[index];
    size_t depth = 0;
    while (depth < ends_ns.size() && ends_ns[depth] > slice.start_ns) ++depth;
    depth = std::min(depth, kMostDepths - 1);
    if (depth == ends_ns.size()) {
      ends_ns.push_back(slice.end_ns());
      rows->push_back({.pid = slice.pid,
                       .tid = slice.tid,
                       .depth = depth,
                       .slices = {},
                       .levels = {}});
    }
    ends_ns[depth] = std::max(ends_ns[depth], slice.end_ns());
    (*rows)[first_row + depth].slices.push_back(index);
  }
}

// How the page shows a counter of hvdlite: its value, divided by the seconds
// since the previous sample and by `divisor`.
struct RateLine {
  absl::string_view counter;
  absl::string_view value;
  absl::string_view label;  // of the chart
  absl::string_view unit;
  absl::string_view name;  // of the line
  double divisor;
  bool is_rate;
};

constexpr std::array kRateLines = {
    RateLine{"PROGRESS_THREAD", "cpu_us", "background thread", "% of a core",
             "running", 1e4, true},
    RateLine{"PROGRESS_THREAD", "delay_us", "background thread", "% of a core",
             "waiting", 1e4, true},
    RateLine{"MAIN_THREAD", "cpu_us", "main thread", "% of a core", "running",
             1e4, true},
    RateLine{"MAIN_THREAD", "delay_us", "main thread", "% of a core", "waiting",
             1e4, true},
    RateLine{"COMPUTE_THREADS", "cpu_us", "computing threads", "cores",
             "running", 1e6, true},
    RateLine{"COMPUTE_THREADS", "delay_us", "computing threads", "cores",
             "waiting", 1e6, true},
    RateLine{"MEMORY", "rss_bytes", "memory", "MB", "in use", 1e6, false},
    RateLine{"MEMORY", "major_faults", "page faults", "per s", "major", 1,
             true},
    RateLine{"MEMORY", "minor_faults", "page faults", "per s", "minor", 1,
             true}};

// Charts of one trace, by process and label.
class ChartCollector {
 public:
  explicit ChartCollector(const Trace& trace) : trace_(trace) {}

  void AddRates(const TraceCounter& counter) {
    const std::string& name = trace_.names[counter.name];
    // The first sample is skipped: the start of its interval is unknown.
    const auto [last, is_first] =
        last_ns_.try_emplace({counter.pid, counter.name}, counter.time_ns);
    const double since_s =
        static_cast<double>(counter.time_ns - last->second) / 1e9;
    last->second = counter.time_ns;
    for (size_t i = 0; i < kRateLines.size(); ++i) {
      const RateLine& line = kRateLines[i];
      if (line.counter != name || (line.is_rate && since_s <= 0)) continue;
      for (const auto& [key, value] : counter.values) {
        if (trace_.names[key] != line.value) continue;
        AddPoint(static_cast<int64_t>(i), counter, std::string(line.label),
                 std::string(line.unit), std::string(line.name),
                 value / line.divisor / (line.is_rate ? since_s : 1));
      }
    }
  }

  void AddValues(const TraceCounter& counter) {
    for (const auto& [key, value] : counter.values) {
      AddPoint(static_cast<int64_t>(kRateLines.size()), counter,
               trace_.names[counter.name], "", trace_.names[key], value);
    }
  }

  std::vector<PageChart> Take() {
    std::vector<PageChart> charts;
    for (auto& [key, chart] : charts_) charts.push_back(std::move(chart));
    return charts;
  }

 private:
  using Key = std::tuple<int64_t, int64_t, std::string>;

  void AddPoint(int64_t order, const TraceCounter& counter,
                const std::string& label, const std::string& unit,
                const std::string& line_name, double value) {
    // Charts have the order of their first lines in the table.
    for (int64_t i = 0; i < order; ++i) {
      if (kRateLines[static_cast<size_t>(i)].label == label) order = i;
    }
    PageChart& chart = charts_[{counter.pid, order, label}];
    chart.pid = counter.pid;
    chart.label = label;
    chart.unit = unit;
    auto line = std::find_if(
        chart.lines.begin(), chart.lines.end(),
        [&](const PageChart::Line& known) { return known.name == line_name; });
    if (line == chart.lines.end()) {
      line = chart.lines.insert(
          line, {.name = line_name, .times_ns = {}, .values = {}});
    }
    line->times_ns.push_back(counter.time_ns);
    line->values.push_back(value);
  }

  const Trace& trace_;
  std::map<Key, PageChart> charts_;
  std::map<std::pair<int64_t, size_t>, int64_t> last_ns_;
};

}  // namespace

std::vector<PageRow> MakePageRows(const Trace& trace) {
  using TrackKey = std::tuple<int64_t, int64_t, int64_t>;
  std::map<TrackKey, std::vector<size_t>> tracks;
  for (size_t i = 0; i < trace.slices.size(); ++i) {
    const TraceSlice& slice = trace.slices[i];
    tracks[{slice.pid, TrackOrder(trace, slice.pid, slice.tid), slice.tid}]
        .push_back(i);
  }
  std::vector<PageRow> rows;
  for (auto& [key, slices] : tracks) {
    AddRowsOfTrack(trace, std::move(slices), &rows);
  }
  for (PageRow& row : rows) AddLevels(trace, &row);
  return rows;
}

std::vector<PageChart> MakePageCharts(const Trace& trace) {
  std::vector<size_t> order(trace.counters.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return trace.counters[a].time_ns < trace.counters[b].time_ns;
  });
  ChartCollector charts(trace);
  for (const size_t i : order) {
    const TraceCounter& counter = trace.counters[i];
    if (trace.processes.at(counter.pid).is_rank) {
      charts.AddRates(counter);
    } else {
      charts.AddValues(counter);
    }
  }
  return charts.Take();
}

}  // namespace hvdlite::timeline_viewer
