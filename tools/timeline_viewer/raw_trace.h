// A trace with all that its events say, for conversion: args by their names,
// instants, arrows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

namespace hvdlite::timeline_viewer {

struct RawText {
  size_t name = 0;  // index in RawTrace::names
};

struct RawArg {
  size_t key = 0;  // index in RawTrace::names
  std::variant<int64_t, double, RawText> value;
};

// A complete event, a begin with its end, or an instant.
struct RawSlice {
  int64_t pid = 0;
  int64_t tid = 0;
  size_t name = 0;  // index in RawTrace::names
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  bool is_instant = false;
  size_t first_arg = 0;  // index in RawTrace::args
  size_t args = 0;

  int64_t end_ns() const { return start_ns + duration_ns; }
};

// Where an arrow leaves a slice, or comes in; or both.
struct RawFlow {
  size_t slice = 0;  // index in RawTrace::slices
  size_t id = 0;     // index in RawTrace::names
  bool is_out = false;
  bool is_in = false;
};

// One of a counter's values.
struct RawValue {
  int64_t pid = 0;
  size_t counter = 0;  // both: indices in RawTrace::names
  size_t key = 0;
  int64_t time_ns = 0;
  std::variant<int64_t, double> value;
};

struct RawTrace {
  std::vector<std::string> names;
  std::vector<RawSlice> slices;
  std::vector<RawArg> args;
  std::vector<RawFlow> flows;
  std::vector<RawValue> values;
  std::map<int64_t, std::string> process_names;                   // by pid
  std::map<std::pair<int64_t, int64_t>, std::string> lane_names;  // pid, tid
  int64_t left_out = 0;  // events that are none of these

  std::span<const RawArg> ArgsOf(const RawSlice& slice) const {
    return std::span(args).subspan(slice.first_arg, slice.args);
  }
};

// Something that happens on a track: a slice begins or ends, or an instant.
struct TrackMoment {
  enum class Kind { kBegin, kEnd, kInstant };
  int64_t time_ns = 0;
  Kind kind = Kind::kBegin;
  size_t slice = 0;  // index in RawTrace::slices
};

// Slices of one lane that nest, as begins and ends in their order.
struct Track {
  int64_t pid = 0;
  int64_t tid = 0;
  std::vector<TrackMoment> moments;
};

// The lanes of `trace` by pid and tid. Slices of a lane that overlap without
// one containing the other get tracks of their own.
std::vector<Track> TracksOf(const RawTrace& trace);

// The name of a process or lane; "process 1", "lane 2" where there is none.
std::string ProcessNameOf(const RawTrace& trace, int64_t pid);
std::string LaneNameOf(const RawTrace& trace, int64_t pid, int64_t tid);

// Reads the trace `path`, or its parts, as far as it can be read, times on rank
// 0's clock. Errors: as of timeline::FindTraceFiles() and ReadTraceText().
absl::StatusOr<RawTrace> ReadRawTrace(const std::string& path);

}  // namespace hvdlite::timeline_viewer
