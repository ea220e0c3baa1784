#include "tools/timeline_viewer/raw_trace.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "timeline/read/slice_edges.h"
#include "timeline/read/trace_event_parser.h"
#include "timeline/read/trace_file.h"
#include "timeline/record/trace_format.h"

namespace hvdlite::timeline_viewer {
namespace {

using timeline::ParsedArg;
using timeline::ParsedEvent;
using timeline::SliceEdge;

// Clocks that differ by more (31 years) are a damaged file.
constexpr int64_t kLargestClockOffsetNs = 1'000'000'000'000'000'000;

using Lane = std::pair<int64_t, int64_t>;  // pid and tid

// What contains comes before what is contained.
void SortByStart(const RawTrace& trace, std::vector<size_t>* slices) {
  const auto key = [&trace](size_t i) {
    const RawSlice& slice = trace.slices[i];
    return std::make_tuple(slice.start_ns, -slice.end_ns(), i);
  };
  std::sort(slices->begin(), slices->end(),
            [&key](size_t a, size_t b) { return key(a) < key(b); });
}

// Puts a RawTrace together, file by file.
class Builder {
 public:
  void Add(const ParsedEvent& event) {
    if (event.phase == 'M') return AddMetadata(event);
    if (!event.start_ns.has_value()) return LeaveOut();
    switch (event.phase) {
      case 'X':
        if (event.has_bad_duration) return LeaveOut();
        AddFlows(event, AddSlice(event, event.duration_ns));
        return;
      case 'B':
        edges_[{event.pid, event.tid}].push_back(
            {.time_ns = *event.start_ns,
             .is_begin = true,
             .id = AddSlice(event, kUnfinished)});
        return;
      case 'E':
        edges_[{event.pid, event.tid}].push_back(
            {.time_ns = *event.start_ns, .is_begin = false, .id = 0});
        return;
      case 'i':
      case 'I':
      case 'R':
        trace_.slices[AddSlice(event, 0)].is_instant = true;
        return;
      case 'C':
        return AddValues(event);
      case 's':
      case 't':
      case 'f':
        points_[{event.pid, event.tid}].push_back(
            {*event.start_ns,
             NameIndex(absl::StrCat(event.name, "/", event.id)),
             event.phase != 'f', event.phase != 's'});
        return;
      default:
        LeaveOut();
    }
  }

  void FinishFile() {
    for (auto& [lane, edges] : edges_) {
      const auto paired = timeline::PairEdges(std::move(edges));
      for (const auto& [begin, end] : paired.pairs) {
        trace_.slices[begin.id].duration_ns = end.time_ns - begin.time_ns;
      }
      trace_.left_out += static_cast<int64_t>(paired.unfinished.size() +
                                              paired.unbegun.size());
    }
    edges_.clear();
    RemoveUnfinished();
    BindPoints();
    for (size_t i = first_slice_; i < trace_.slices.size(); ++i) {
      trace_.slices[i].start_ns += OffsetOf(trace_.slices[i].pid);
    }
    for (size_t i = first_value_; i < trace_.values.size(); ++i) {
      trace_.values[i].time_ns += OffsetOf(trace_.values[i].pid);
    }
    first_slice_ = trace_.slices.size();
    first_value_ = trace_.values.size();
    offsets_ns_.clear();
  }

  RawTrace Take() { return std::move(trace_); }

 private:
  static constexpr int64_t kUnfinished = -1;

  // An event that is the end of an arrow on the slice around it.
  struct Point {
    int64_t time_ns;
    size_t id;
    bool is_out;
    bool is_in;
  };

  void LeaveOut() { ++trace_.left_out; }

  size_t NameIndex(absl::string_view name) {
    const auto [place, added] =
        name_indices_.try_emplace(name, trace_.names.size());
    if (added) trace_.names.emplace_back(name);
    return place->second;
  }

  void AddMetadata(const ParsedEvent& event) {
    for (const ParsedArg& arg : event.args) {
      const auto* const text = std::get_if<absl::string_view>(&arg.value);
      const auto* const number = std::get_if<int64_t>(&arg.value);
      if (event.name == "process_name" && arg.key == "name" &&
          text != nullptr) {
        trace_.process_names[event.pid] = std::string(*text);
      } else if (event.name == "thread_name" && arg.key == "name" &&
                 text != nullptr) {
        trace_.lane_names[{event.pid, event.tid}] = std::string(*text);
      } else if (event.name == timeline::kTraceMetadata &&
                 arg.key == "clock_offset_ns" && number != nullptr &&
                 *number >= -kLargestClockOffsetNs &&
                 *number <= kLargestClockOffsetNs) {
        offsets_ns_[event.pid] = *number;
      }
    }
  }

  size_t AddSlice(const ParsedEvent& event, int64_t duration_ns) {
    RawSlice& slice = trace_.slices.emplace_back();
    slice.pid = event.pid;
    slice.tid = event.tid;
    slice.name = NameIndex(event.name);
    slice.start_ns = *event.start_ns;
    slice.duration_ns = duration_ns;
    slice.first_arg = trace_.args.size();
    slice.args = event.args.size();
    for (const ParsedArg& arg : event.args) {
      RawArg& copy = trace_.args.emplace_back();
      copy.key = NameIndex(arg.key);
      if (const auto* text = std::get_if<absl::string_view>(&arg.value)) {
        copy.value = RawText{NameIndex(*text)};
      } else if (const auto* real = std::get_if<double>(&arg.value)) {
        copy.value = *real;
      } else {
        copy.value = std::get<int64_t>(arg.value);
      }
    }
    return trace_.slices.size() - 1;
  }

  void AddFlows(const ParsedEvent& event, size_t slice) {
    if (event.bind_id.empty() || (!event.flow_in && !event.flow_out)) return;
    trace_.flows.push_back({.slice = slice,
                            .id = NameIndex(event.bind_id),
                            .is_out = event.flow_out,
                            .is_in = event.flow_in});
  }

  void AddValues(const ParsedEvent& event) {
    for (const ParsedArg& arg : event.args) {
      RawValue value = {.pid = event.pid,
                        .counter = NameIndex(event.name),
                        .key = NameIndex(arg.key),
                        .time_ns = *event.start_ns,
                        .value = {}};
      if (const auto* number = std::get_if<int64_t>(&arg.value)) {
        value.value = *number;
      } else if (const auto* real = std::get_if<double>(&arg.value)) {
        value.value = *real;
      } else {
        LeaveOut();
        continue;
      }
      trace_.values.push_back(value);
    }
  }

  int64_t OffsetOf(int64_t pid) const {
    const auto offset = offsets_ns_.find(pid);
    return offset == offsets_ns_.end() ? 0 : offset->second;
  }

  // Begins without an end; no flow is bound to one yet.
  void RemoveUnfinished() {
    std::vector<RawSlice>& slices = trace_.slices;
    std::vector<size_t> places(slices.size() - first_slice_);
    size_t to = first_slice_;
    for (size_t from = first_slice_; from < slices.size(); ++from) {
      places[from - first_slice_] = to;
      if (slices[from].duration_ns == kUnfinished) continue;
      slices[to++] = slices[from];
    }
    slices.resize(to);
    for (; next_flow_ < trace_.flows.size(); ++next_flow_) {
      RawFlow& flow = trace_.flows[next_flow_];
      flow.slice = places[flow.slice - first_slice_];
    }
  }

  // To the innermost slice of their lane that is going on.
  void BindPoints() {
    if (points_.empty()) return;
    std::map<Lane, std::vector<size_t>> lanes;
    for (size_t i = first_slice_; i < trace_.slices.size(); ++i) {
      const RawSlice& slice = trace_.slices[i];
      if (points_.contains({slice.pid, slice.tid})) {
        lanes[{slice.pid, slice.tid}].push_back(i);
      }
    }
    for (auto& [lane, points] : points_) {
      std::sort(
          points.begin(), points.end(),
          [](const Point& a, const Point& b) { return a.time_ns < b.time_ns; });
      std::vector<size_t>& slices = lanes[lane];
      SortByStart(trace_, &slices);
      std::vector<size_t> open;
      size_t next = 0;
      for (const Point& point : points) {
        for (; next < slices.size() &&
               trace_.slices[slices[next]].start_ns <= point.time_ns;
             ++next) {
          while (!open.empty() && trace_.slices[open.back()].end_ns() <
                                      trace_.slices[slices[next]].start_ns) {
            open.pop_back();
          }
          open.push_back(slices[next]);
        }
        while (!open.empty() &&
               trace_.slices[open.back()].end_ns() < point.time_ns) {
          open.pop_back();
        }
        if (open.empty()) {
          LeaveOut();
          continue;
        }
        trace_.flows.push_back({.slice = open.back(),
                                .id = point.id,
                                .is_out = point.is_out,
                                .is_in = point.is_in});
      }
    }
    points_.clear();
    next_flow_ = trace_.flows.size();
  }

  RawTrace trace_;
  absl::flat_hash_map<std::string, size_t> name_indices_;

  // Of the file being read.
  size_t first_slice_ = 0;
  size_t first_value_ = 0;
  size_t next_flow_ = 0;
  std::map<Lane, std::vector<SliceEdge>> edges_;
  std::map<Lane, std::vector<Point>> points_;
  std::map<int64_t, int64_t> offsets_ns_;  // by pid
};

// Takes from `slices`, which are sorted by their start, those that nest.
Track TakeTrack(const RawTrace& trace, std::vector<size_t>* slices) {
  Track track;
  std::vector<size_t> left;
  std::vector<size_t> open;
  const auto close_until = [&](int64_t time_ns) {
    for (; !open.empty() && trace.slices[open.back()].end_ns() <= time_ns;
         open.pop_back()) {
      track.moments.push_back({trace.slices[open.back()].end_ns(),
                               TrackMoment::Kind::kEnd, open.back()});
    }
  };
  for (const size_t i : *slices) {
    const RawSlice& slice = trace.slices[i];
    close_until(slice.start_ns);
    if (!open.empty() && trace.slices[open.back()].end_ns() < slice.end_ns()) {
      left.push_back(i);
    } else if (slice.is_instant) {
      track.moments.push_back({slice.start_ns, TrackMoment::Kind::kInstant, i});
    } else {
      track.moments.push_back({slice.start_ns, TrackMoment::Kind::kBegin, i});
      open.push_back(i);
    }
  }
  close_until(std::numeric_limits<int64_t>::max());
  slices->swap(left);
  return track;
}

}  // namespace

std::vector<Track> TracksOf(const RawTrace& trace) {
  std::map<Lane, std::vector<size_t>> lanes;
  for (size_t i = 0; i < trace.slices.size(); ++i) {
    lanes[{trace.slices[i].pid, trace.slices[i].tid}].push_back(i);
  }
  std::vector<Track> tracks;
  for (auto& [lane, slices] : lanes) {
    SortByStart(trace, &slices);
    while (!slices.empty()) {
      Track& track = tracks.emplace_back(TakeTrack(trace, &slices));
      track.pid = lane.first;
      track.tid = lane.second;
    }
  }
  return tracks;
}

std::string ProcessNameOf(const RawTrace& trace, int64_t pid) {
  const auto name = trace.process_names.find(pid);
  return name == trace.process_names.end() ? absl::StrCat("process ", pid)
                                           : name->second;
}

std::string LaneNameOf(const RawTrace& trace, int64_t pid, int64_t tid) {
  const auto name = trace.lane_names.find({pid, tid});
  return name == trace.lane_names.end() ? absl::StrCat("lane ", tid)
                                        : name->second;
}

absl::StatusOr<RawTrace> ReadRawTrace(const std::string& path) {
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                           timeline::FindTraceFiles(path));
  Builder builder;
  for (const std::string& file : files) {
    HVDLITE_ASSIGN_OR_RETURN(const timeline::TraceText read,
                             timeline::ReadTraceText(file));
    timeline::ParseTraceEvents(
        read.text, [&](const ParsedEvent& event) { builder.Add(event); });
    builder.FinishFile();
  }
  return builder.Take();
}

}  // namespace hvdlite::timeline_viewer
