// AdasumReduction: combines the vectors of all ranks in a tree.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "collective/adasum/adasum_kernels.h"
#include "collective/communicator.h"
#include "collective/fusion/fusion_buffer.h"
#include "collective/kernels/data_type.h"

namespace hvdlite::collective {

// Which ranks combine, as FusedAdasum tells.
class AdasumTree {
 public:
  explicit AdasumTree(int size);

  int num_leaves() const { return num_leaves_; }
  int LeafOf(int rank) const {
    return rank < 2 * extra_ ? rank / 2 : rank - extra_;
  }
  // The rank that stands for a leaf: the lower one of two.
  int RankOf(int leaf) const {
    return leaf < extra_ ? 2 * leaf : leaf + extra_;
  }
  // The rank with which `rank` shares its leaf; -1 if there is none.
  int LeafMate(int rank) const { return rank < 2 * extra_ ? rank ^ 1 : -1; }

 private:
  int num_leaves_;
  int extra_;
};

// One batch on one rank. Lower ranks' vectors are a, higher ones' b. At each
// level of the tree two ranks that hold the same range of two nodes swap
// halves, so that each combines one; the scalar products of a tensor are summed
// over the ranks that hold the two nodes, in the same order everywhere.
// Afterwards the ranges are swapped back. Keeps references to its arguments.
class AdasumReduction {
 public:
  // `vector` holds all tensors of this rank, of `dtype` (a float type), one
  // after the other; tensor i ends at byte tensor_ends[i]. Vectors travel in
  // chunks of at most `chunk_bytes`; `next_chunk` is called before each but the
  // first, and an error of it ends the reduction.
  AdasumReduction(Communicator& communicator, DataType dtype,
                  absl::Span<std::byte> vector,
                  absl::Span<const size_t> tensor_ends, size_t chunk_bytes,
                  absl::FunctionRef<absl::Status()> next_chunk);

  // Leaves the root's vector in `vector`. All ranks call it with as many bytes.
  absl::Status Run();

 private:
  struct Range {  // of bytes of `vector`
    size_t begin;
    size_t end;
    size_t size() const { return end - begin; }
  };

  absl::Status CombineOnLeaf(int leaf_mate);
  absl::Status CombineLeaves();
  absl::Status CombineLevel(int distance, Range kept, Range given);

  // Of every tensor's part in `range` of this rank's vector and of `received_`,
  // which holds another node's `range`.
  std::vector<ScalarProducts> Multiply(Range range, bool received_is_b) const;
  absl::Status SumOverNodes(int distance,
                            std::vector<ScalarProducts>& products);
  void Combine(Range range, bool received_is_b,
               absl::Span<const ScalarProducts> products);

  absl::Status Swap(int peer, absl::Span<const std::byte> send,
                    absl::Span<std::byte> receive);
  // Calls visit(tensor, its part in `range`) where that is not empty.
  template <typename Visit>
  void VisitTensors(Range range, const Visit& visit) const;
  absl::Span<std::byte> BytesOf(Range range) const {
    return vector_.subspan(range.begin, range.size());
  }

  Communicator& communicator_;
  const AdasumTree tree_;
  const int leaf_;
  const DataType dtype_;
  const absl::Span<std::byte> vector_;
  const absl::Span<const size_t> tensor_ends_;
  const size_t chunk_bytes_;
  const absl::FunctionRef<absl::Status()> next_chunk_;
  FusionBuffer received_;
  bool any_chunk_ = false;
};

}  // namespace hvdlite::collective
