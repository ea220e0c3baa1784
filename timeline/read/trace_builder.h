// Builds a Trace from events, which may come from files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "timeline/read/parsed_event.h"
#include "timeline/read/slice_edges.h"
#include "timeline/read/trace.h"

namespace hvdlite::timeline {

// Call StartFile(), Add() for each event, and FinishFile() for each file; then
// call Take(). Not thread-safe.
class TraceBuilder {
 public:
  // `bytes`: size of the file, to reserve memory for its events; 0: unknown.
  void StartFile(const std::string& path, size_t bytes);

  void Add(const ParsedEvent& event);

  // Pairs begins with ends by a stack per (pid, tid), in order of time. Shifts
  // slices to rank 0's clock. Events without a match become warnings.
  void FinishFile();

  void AddWarning(std::string warning);
  void SetProfiledRank(const std::optional<ProfiledRank>& profiled) {
    trace_.profiled = profiled;
  }

  // Returns the trace and leaves the builder empty.
  Trace Take();

 private:
  size_t NameIndex(absl::string_view name);
  // Adds the process if it is not known yet.
  void AddProcess(int64_t pid);
  void AddMetadata(const ParsedEvent& event);
  void AddSlice(const ParsedEvent& event, int64_t duration_ns);
  void AddCounter(const ParsedEvent& event);
  // Adds the args of `event` to the trace's details and returns their index;
  // -1 if there are none.
  int32_t AddDetails(const ParsedEvent& event);
  void PairAllEdges();
  void ShiftToRank0();
  void Warn(int64_t count, const std::string& what);

  Trace trace_;
  absl::flat_hash_map<std::string, size_t> name_indices_;
  std::optional<int64_t> last_pid_;  // argument of the last AddProcess()

  // About the file being read.
  std::string file_;
  size_t first_slice_ = 0;
  size_t first_counter_ = 0;
  absl::flat_hash_map<std::pair<int64_t, int64_t>, std::vector<SliceEdge>>
      edges_;
  std::map<int64_t, int64_t> clock_offsets_ns_;  // by pid
  int64_t malformed_events_ = 0;
  int64_t unfinished_events_ = 0;  // begin without end
  int64_t unbegun_events_ = 0;     // end without begin
};

// Returns the trace of one rank's `events`, as if written to a file and read.
Trace TraceOf(int64_t rank, const std::vector<TraceArg>& facts,
              const std::vector<TraceEvent>& events);

}  // namespace hvdlite::timeline
