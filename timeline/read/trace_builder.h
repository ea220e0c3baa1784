// Puts a Trace together from events, of files or not.
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

// Use: for each file StartFile(), Add() for its events, FinishFile(); then
// Take(). Not thread-safe.
class TraceBuilder {
 public:
  // `bytes`: of the file, to make room for its events; 0: not known.
  void StartFile(const std::string& path, size_t bytes);

  void Add(const ParsedEvent& event);

  // Pairs begins with ends by a stack per (pid, tid), in order of time, and
  // shifts slices to rank 0's clock. What did not fit becomes warnings.
  void FinishFile();

  void AddWarning(std::string warning);
  void SetProfiledRank(const std::optional<ProfiledRank>& profiled) {
    trace_.profiled = profiled;
  }

  // The trace; the builder is then empty.
  Trace Take();

 private:
  size_t NameIndex(absl::string_view name);
  // The process is then known.
  void AddProcess(int64_t pid);
  void AddMetadata(const ParsedEvent& event);
  void AddSlice(const ParsedEvent& event, int64_t duration_ns);
  void AddCounter(const ParsedEvent& event);
  // Index in the trace's details of what `event` says in its args, or -1.
  int32_t AddDetails(const ParsedEvent& event);
  void PairAllEdges();
  void ShiftToRank0();
  void Warn(int64_t count, const std::string& what);

  Trace trace_;
  absl::flat_hash_map<std::string, size_t> name_indices_;
  std::optional<int64_t> last_pid_;  // that AddProcess() was called with

  // Of the file being read.
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

// The trace of `events` of one rank, as if they had been written and read.
Trace TraceOf(int64_t rank, const std::vector<TraceArg>& facts,
              const std::vector<TraceEvent>& events);

}  // namespace hvdlite::timeline
