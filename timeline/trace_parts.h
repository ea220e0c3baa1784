// The parts of a trace on disk: "trace.json.rank00000", "trace.json.rank00001",
// one per rank (TracePartPath in trace_recorder.h).
#pragma once

#include <map>
#include <string>

namespace hvdlite::timeline {

// Parts of `path` that exist, by rank.
std::map<int, std::string> FindTraceParts(const std::string& path);

// Whether `path` is named like a part.
bool IsTracePartPath(const std::string& path);

// Removes what an earlier run left at `path`: a merged trace, and parts of
// ranks that a run of `size` ranks will not overwrite. Else a viewer would take
// them for this run's if this run is killed. Failures are ignored.
void RemoveEarlierTrace(const std::string& path, int size);

}  // namespace hvdlite::timeline
