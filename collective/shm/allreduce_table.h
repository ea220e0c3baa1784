// AllreduceTable: which algorithm reduces how many bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvdlite::collective {

enum class AllreduceAlgorithm : uint8_t {
  kFlat,     // over all ranks at once, by MPI, as if no memory were shared
  kOneShot,  // in a node: every rank reads everything and reduces it all
  kTwoShot,  // in a node: every rank reduces its slice, all read the results
  kHierarchical,  // kTwoShot in the node, each slice across the nodes in
                  // between
};

absl::string_view NameOf(AllreduceAlgorithm algorithm);  // "two-shot"

struct AllreduceChoice {
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::kFlat;
  // What travels at a time, of the batch; at most kMaxChunkBytes, which it is
  // for flat, whatever this says.
  size_t chunk_bytes = 0;
  // Results go past the cache on their way into the tensors.
  bool streaming = false;
};

// A measured table, in lines of
//
//   <nodes> <ranks per node> <up to bytes> <algorithm> <chunk bytes> <stores>
//
// where nodes and ranks per node are numbers or ranges ("2-8", "2-"), bytes are
// numbers with K, M or G or "inf", the algorithm is "flat", "one-shot",
// "two-shot" or "hierarchical", and stores are "cached" or "streaming". The
// first line that fits decides. Text from '#' on and empty lines are ignored.
// Immutable.
class AllreduceTable {
 public:
  static constexpr size_t kMaxChunkBytes = size_t{2} << 20;

  // InvalidArgument naming the line, and what is wrong with it.
  static absl::StatusOr<AllreduceTable> Parse(absl::string_view text);

  // The one that comes with hvdlite: collective/shm/allreduce_table.txt.
  static AllreduceTable BuiltIn();

  // The same table, but hierarchical where it says flat and nodes have
  // several ranks: flat sums add in another order, so that their bits would
  // depend on the size of the batch.
  AllreduceTable WithOneOrder() const;

  // Where no line fits: flat for several nodes, else two-shot.
  AllreduceChoice Choose(int nodes, int ranks_per_node, size_t bytes) const;

  // The lines that can fit, as text. For people.
  std::string Describe(int nodes, int ranks_per_node) const;

 private:
  struct Range {
    int64_t low = 1;
    int64_t high = std::numeric_limits<int64_t>::max();
    bool Contains(int64_t value) const { return low <= value && value <= high; }
  };
  struct Line {
    Range nodes;
    Range ranks_per_node;
    size_t up_to_bytes = 0;
    AllreduceChoice choice;
    std::string text;
  };

  static absl::StatusOr<Line> ParseLine(absl::string_view text);

  AllreduceChoice FirstThatFits(int nodes, int ranks_per_node,
                                size_t bytes) const;

  std::vector<Line> lines_;
  bool one_order_ = false;
};

}  // namespace hvdlite::collective
