#include "timeline/read/slice_edges.h"

#include <algorithm>

namespace hvdlite::timeline {

PairedEdges PairEdges(std::vector<SliceEdge> edges) {
  std::stable_sort(edges.begin(), edges.end(),
                   [](const SliceEdge& a, const SliceEdge& b) {
                     return a.time_ns < b.time_ns;
                   });
  PairedEdges paired;
  std::vector<SliceEdge>& open = paired.unfinished;
  for (const SliceEdge& edge : edges) {
    if (edge.is_begin) {
      open.push_back(edge);
    } else if (open.empty()) {
      paired.unbegun.push_back(edge);
    } else {
      paired.pairs.emplace_back(open.back(), edge);
      open.pop_back();
    }
  }
  return paired;
}

}  // namespace hvdlite::timeline
