// AllreduceTable: selects an allreduce algorithm by the number of bytes.
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
  kFlat,          // MPI over all ranks, without shared memory
  kOneShot,       // in a node: every rank reduces all of the bucket
  kTwoShot,       // in a node: every rank reduces a slice, all read it
  kHierarchical,  // kTwoShot in the node, with each slice reduced across nodes
};

absl::string_view NameOf(AllreduceAlgorithm algorithm);  // "two-shot"

struct AllreduceChoice {
  AllreduceAlgorithm algorithm = AllreduceAlgorithm::kFlat;
  // Bytes of the bucket that travel at a time. At most kMaxChunkBytes; flat
  // always uses kMaxChunkBytes.
  size_t chunk_bytes = 0;
  // Whether results are written to the tensors past the cache.
  bool streaming = false;
};

// A measured table with lines of the form
//
//   <nodes> <ranks per node> <up to bytes> <algorithm> <chunk bytes> <stores>
//
// Nodes and ranks per node are numbers or ranges ("2-8", "2-"). Bytes are
// numbers with K, M or G, or "inf". The algorithm is "flat", "one-shot",
// "two-shot" or "hierarchical"; stores are "cached" or "streaming". The first
// line that matches decides. Empty lines, and text from '#' on, are ignored.
// Immutable.
class AllreduceTable {
 public:
  static constexpr size_t kMaxChunkBytes = size_t{2} << 20;

  // InvalidArgument names the line and the mistake in it.
  static absl::StatusOr<AllreduceTable> Parse(absl::string_view text);

  // The built-in table: collective/shm/allreduce_table.txt.
  static AllreduceTable BuiltIn();

  // The same table with hierarchical instead of flat if nodes have several
  // ranks. Flat sums use another order of additions, so the bits of the result
  // would depend on the size of the bucket.
  AllreduceTable WithOneOrder() const;

  // If no line matches: flat for several nodes, otherwise two-shot.
  AllreduceChoice Choose(int nodes, int ranks_per_node, size_t bytes) const;

  // The lines that can match, as text for users.
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
