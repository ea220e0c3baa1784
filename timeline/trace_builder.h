// Puts a Trace together from the events of one or more files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "timeline/trace.h"
#include "timeline/trace_event_parser.h"

namespace hvdlite::timeline {

// Use: for each file StartFile(), Add() for its events, FinishFile(); then
// Take(). Not thread-safe.
class TraceBuilder {
 public:
  void StartFile(const std::string& path);

  void Add(const ParsedEvent& event);

  // Pairs begins with ends by a stack per (pid, tid), in order of time, and
  // shifts slices to rank 0's clock. What did not fit becomes warnings.
  void FinishFile();

  void AddWarning(std::string warning);

  // The trace; the builder is then empty.
  Trace Take();

 private:
  // A begin or an end.
  struct Edge {
    bool is_begin;
    int64_t time_ns;
    size_t slice;  // a begin's: its place in the trace
  };

  size_t NameIndex(const std::string& name);
  void AddMetadata(const ParsedEvent& event);
  void AddSlice(const ParsedEvent& event, int64_t duration_ns);
  void PairEdges();
  void Warn(int64_t count, const std::string& what);

  Trace trace_;
  absl::flat_hash_map<std::string, size_t> name_indices_;

  // Of the file being read.
  std::string file_;
  size_t first_slice_ = 0;
  std::map<std::pair<int64_t, int64_t>, std::vector<Edge>> edges_;
  std::map<int64_t, int64_t> clock_offsets_ns_;  // by pid
  int64_t malformed_events_ = 0;
  int64_t unfinished_events_ = 0;  // begin without end
  int64_t unbegun_events_ = 0;     // end without begin
};

}  // namespace hvdlite::timeline
