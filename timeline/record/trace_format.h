// The format and the paths of per-rank trace files.
//
//   [
//   {"name":"process_name","ph":"M","pid":0,"tid":1,"args":{...}},
//   {"name":"hvdlite_trace","ph":"M",...,"args":{"rank":0,"size":2,...}},
//   {"ts":12.345,"dur":1.000,"ph":"X","name":"ALLREDUCE","pid":0,"tid":1},
//   {"ts":12.345,"ph":"C","name":"MEMORY","pid":0,"tid":1,"args":{...}},
//   {"name":"hvdlite_dropped_events","ph":"M",...}
//   ]
//
// pid is the rank, tid the track. Each line has one event and ends with a
// comma, except the last, which Close() writes. So the file of a killed process
// lacks only its end. Timestamps are microseconds of the rank's own clock;
// adding the clock_offset_ns of the "hvdlite_trace" line gives rank 0's clock.
// Lines of events start with "ts", so that a merge can shift them without
// parsing the rest.
//
// The files are "trace.json.rank00000", "trace.json.rank00001", one per rank.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "timeline/record/trace_event.h"

namespace hvdlite::timeline {

// Names of the metadata events, and the start of the line of every other event.
inline constexpr absl::string_view kTraceMetadata = "hvdlite_trace";
inline constexpr absl::string_view kDroppedMetadata = "hvdlite_dropped_events";
inline constexpr absl::string_view kEventLinePrefix = "{\"ts\":";

// The description of a rank in its trace file, besides the rank number.
struct PartDescription {
  int size = 1;
  std::string host;
  int64_t clock_offset_ns = 0;  // see above
  std::vector<TraceArg> facts = {};
};

// Appends "[" and the lines that describe the rank.
void AppendPartHeader(int rank, const PartDescription& part, std::string* out);

// Appends the lines that name a track. Call it before the track's first event.
void AppendTrackLines(int rank, int track, std::string* out);

void AppendEventLine(int rank, const TraceEvent& event, std::string* out);

// Appends the last line and "]".
void AppendPartEnd(int rank, int64_t dropped_events, std::string* out);

// Appends `text` in quotes, escaped. Bytes that are not UTF-8 become U+FFFD.
void AppendJsonString(absl::string_view text, std::string* out);

// Appends `value` with all its digits; null if it is not finite.
void AppendJsonNumber(double value, std::string* out);

// Appends `time_ns` in microseconds with three decimals, such as "12.345".
void AppendMicroseconds(int64_t time_ns, std::string* out);

// The path of the trace file of `rank` for the trace `path`.
std::string TracePartPath(const std::string& path, int rank);

// The existing per-rank trace files of `path`, by rank.
std::map<int, std::string> FindTraceParts(const std::string& path);

// Whether `path` has the name of a per-rank trace file.
bool IsTracePartPath(const std::string& path);

// The trace of the world that replaces the one that recorded into `path`:
// "trace.json" -> "trace.world2.json" -> "trace.world3.json".
std::string PathOfNextWorld(const std::string& path);

// Removes files of an earlier run at `path`: the merged trace, and per-rank
// files that a run of `size` ranks does not overwrite. Otherwise a viewer would
// read them as files of this run if this run is killed. Failures are ignored.
void RemoveEarlierTrace(const std::string& path, int size);

}  // namespace hvdlite::timeline
