// Pairs the begins and ends of slices (Chrome's phases B and E).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hvdlite::timeline {

struct SliceEdge {
  int64_t time_ns = 0;
  bool is_begin = false;
  size_t id = 0;  // the caller's
};

struct PairedEdges {
  std::vector<std::pair<SliceEdge, SliceEdge>> pairs;  // by the time of the end
  std::vector<SliceEdge> unfinished;                   // without an end
  std::vector<SliceEdge> unbegun;                      // without a begin
};

// Pairs the edges of one track, given in file order. An end belongs to the
// latest begin that is still open.
PairedEdges PairEdges(std::vector<SliceEdge> edges);

}  // namespace hvdlite::timeline
