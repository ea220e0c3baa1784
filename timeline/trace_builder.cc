#include "timeline/trace_builder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "timeline/part_format.h"

namespace hvdlite::timeline {
namespace {

// The duration of a begin whose end was not found.
constexpr int64_t kUnfinished = -1;

// Clocks that differ by more (31 years) are a damaged file.
constexpr int64_t kLargestClockOffsetNs = 1'000'000'000'000'000'000;

}  // namespace

void TraceBuilder::StartFile(const std::string& path) {
  trace_.files.push_back(path);
  file_ = path;
  first_slice_ = trace_.slices.size();
  edges_.clear();
  clock_offsets_ns_.clear();
  malformed_events_ = 0;
  unfinished_events_ = 0;
  unbegun_events_ = 0;
}

void TraceBuilder::Add(const ParsedEvent& event) {
  switch (event.phase) {
    case 'M':
      AddMetadata(event);
      break;
    case 'X':
      if (!event.start_ns.has_value() || event.has_bad_duration) {
        ++malformed_events_;
      } else {
        AddSlice(event, event.duration_ns);
      }
      break;
    case 'B':
    case 'E': {
      if (!event.start_ns.has_value()) {
        ++malformed_events_;
        break;
      }
      const bool is_begin = event.phase == 'B';
      edges_[{event.pid, event.tid}].push_back(
          {is_begin, *event.start_ns, trace_.slices.size()});
      if (is_begin) AddSlice(event, kUnfinished);
      break;
    }
    case 0:
      ++malformed_events_;
      break;
    default:  // instants, counters, flows: nothing that takes time
      break;
  }
}

void TraceBuilder::FinishFile() {
  PairEdges();
  std::vector<TraceSlice>& slices = trace_.slices;
  slices.erase(
      std::remove_if(slices.begin() + static_cast<std::ptrdiff_t>(first_slice_),
                     slices.end(),
                     [](const TraceSlice& slice) {
                       return slice.duration_ns == kUnfinished;
                     }),
      slices.end());
  for (size_t i = first_slice_; i < slices.size(); ++i) {
    const auto offset = clock_offsets_ns_.find(slices[i].pid);
    if (offset != clock_offsets_ns_.end()) slices[i].start_ns += offset->second;
  }
  Warn(malformed_events_, "without phase, time or a valid duration left out");
  Warn(unfinished_events_, "begun but not ended left out");
  Warn(unbegun_events_, "ended but not begun left out");
}

void TraceBuilder::AddWarning(std::string warning) {
  trace_.warnings.push_back(std::move(warning));
}

Trace TraceBuilder::Take() {
  name_indices_.clear();
  return std::exchange(trace_, Trace());
}

size_t TraceBuilder::NameIndex(const std::string& name) {
  const auto [place, added] =
      name_indices_.try_emplace(name, trace_.names.size());
  if (added) trace_.names.push_back(name);
  return place->second;
}

void TraceBuilder::AddMetadata(const ParsedEvent& event) {
  if (event.name == "process_name") {
    trace_.processes[event.pid].name = event.arg_name;
  } else if (event.name == kTraceMetadata) {
    TraceProcess& process = trace_.processes[event.pid];
    process.is_rank = true;
    process.host = event.arg_host;
    process.world_size = event.arg_size.value_or(0);
    const int64_t offset_ns = event.arg_clock_offset_ns.value_or(0);
    if (offset_ns >= -kLargestClockOffsetNs &&
        offset_ns <= kLargestClockOffsetNs) {
      clock_offsets_ns_[event.pid] = offset_ns;
    } else {
      ++malformed_events_;
    }
  } else if (event.name == kDroppedMetadata) {
    trace_.processes[event.pid].dropped_events +=
        event.arg_dropped_events.value_or(0);
  }
}

void TraceBuilder::AddSlice(const ParsedEvent& event, int64_t duration_ns) {
  trace_.processes.try_emplace(event.pid);
  trace_.slices.push_back({event.pid, event.tid, NameIndex(event.name),
                           *event.start_ns, duration_ns});
}

void TraceBuilder::PairEdges() {
  for (auto& [lane, edges] : edges_) {
    std::stable_sort(
        edges.begin(), edges.end(),
        [](const Edge& a, const Edge& b) { return a.time_ns < b.time_ns; });
    std::vector<size_t> open;
    for (const Edge& edge : edges) {
      if (edge.is_begin) {
        open.push_back(edge.slice);
      } else if (open.empty()) {
        ++unbegun_events_;
      } else {
        TraceSlice& slice = trace_.slices[open.back()];
        slice.duration_ns = edge.time_ns - slice.start_ns;
        open.pop_back();
      }
    }
    unfinished_events_ += static_cast<int64_t>(open.size());
  }
}

void TraceBuilder::Warn(int64_t count, const std::string& what) {
  if (count == 0) return;
  AddWarning(absl::StrCat(file_, ": ", count,
                          count == 1 ? " event " : " events ", what));
}

}  // namespace hvdlite::timeline
