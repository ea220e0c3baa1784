// The text of a rank's trace part, and where parts lie.
//
//   [
//   {"name":"process_name","ph":"M","pid":0,"tid":1,"args":{...}},
//   {"name":"hvdlite_trace","ph":"M",...,"args":{"rank":0,"size":2,...}},
//   {"ts":12.345,"dur":1.000,"ph":"X","name":"ALLREDUCE","pid":0,"tid":1},
//   {"ts":12.345,"ph":"C","name":"MEMORY","pid":0,"tid":1,"args":{...}},
//   {"name":"hvdlite_dropped_events","ph":"M",...}
//   ]
//
// pid is the rank, tid the lane. One event per line, each with a comma but for
// the last, which Close() writes: so the file of a killed process lacks its end
// and nothing else. Timestamps are microseconds of the rank's own clock; adding
// the clock_offset_ns of the "hvdlite_trace" line gives rank 0's. Lines of
// events start with "ts", so that a merge can shift them without parsing the
// rest.
//
// Parts lie on disk as "trace.json.rank00000", "trace.json.rank00001", one per
// rank.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "timeline/record/trace_event.h"

namespace hvdlite::timeline {

// Names of the metadata events, and the beginning of every event's line.
inline constexpr absl::string_view kTraceMetadata = "hvdlite_trace";
inline constexpr absl::string_view kDroppedMetadata = "hvdlite_dropped_events";
inline constexpr absl::string_view kEventLinePrefix = "{\"ts\":";

// What a part says of its rank, beside its number.
struct PartDescription {
  int size = 1;
  std::string host;
  int64_t clock_offset_ns = 0;  // see above
  std::vector<TraceArg> facts = {};
};

// "[" and the lines that describe the rank.
void AppendPartHeader(int rank, const PartDescription& part, std::string* out);

// The lines that name a lane; to precede its first event.
void AppendLaneLines(int rank, int lane, std::string* out);

void AppendEventLine(int rank, const TraceEvent& event, std::string* out);

// The last line and "]".
void AppendPartEnd(int rank, int64_t dropped_events, std::string* out);

// Pieces of JSON, appended to a string.

// Appends `text` in quotes, escaped. Bytes that are not UTF-8 become U+FFFD.
void AppendJsonString(absl::string_view text, std::string* out);

// Appends `value` with all its digits; null if it is not finite.
void AppendJsonNumber(double value, std::string* out);

// Appends `time_ns` in microseconds with three decimals, such as "12.345".
void AppendMicroseconds(int64_t time_ns, std::string* out);

// Path of rank `rank`'s part of the trace `path`.
std::string TracePartPath(const std::string& path, int rank);

// Parts of `path` that exist, by rank.
std::map<int, std::string> FindTraceParts(const std::string& path);

// Whether `path` is named like a part.
bool IsTracePartPath(const std::string& path);

// Where a world records that replaces the one that recorded into `path`:
// "trace.json" -> "trace.world2.json" -> "trace.world3.json".
std::string PathOfNextWorld(const std::string& path);

// Removes what an earlier run left at `path`: a merged trace, and parts of
// ranks that a run of `size` ranks will not overwrite. Else a viewer would take
// them for this run's if this run is killed. Failures are ignored.
void RemoveEarlierTrace(const std::string& path, int size);

}  // namespace hvdlite::timeline
