// A trace in memory, and reading one: hvdlite's, Horovod's, and Chrome's format
// in general.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hvdlite::timeline {

// Something that took time: a complete event, or a begin and its end.
struct TraceSlice {
  int64_t pid = 0;  // the rank, in hvdlite's traces
  int64_t tid = 0;  // the lane, in hvdlite's traces
  size_t name = 0;  // index in Trace::names
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
};

struct TraceProcess {
  std::string name;
  // Of hvdlite's own traces; else is_rank is false.
  bool is_rank = false;
  std::string host;
  int64_t world_size = 0;
  int64_t dropped_events = 0;
};

struct Trace {
  std::vector<std::string> files;  // that it was read from
  std::vector<std::string> names;  // distinct names of slices
  // In file order; of a begin and an end, where the begin stands.
  std::vector<TraceSlice> slices;
  std::map<int64_t, TraceProcess> processes;  // by pid; all that slices have
  std::vector<std::string> warnings;          // for people, one line each
};

// Reads the trace file `path`. If there is none, but parts of it are ("path"
// + ".rank00000" ...), reads them all, timestamps on rank 0's clock. Files of
// killed or still running processes are read as far as they go; what is odd
// about a file becomes a warning. Errors: NotFound; files that cannot be read,
// are empty or are no traces.
absl::StatusOr<Trace> ReadTrace(const std::string& path);

}  // namespace hvdlite::timeline
