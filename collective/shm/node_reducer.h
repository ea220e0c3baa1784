// NodeReducer: allreduce through the shared memory of a node.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "collective/communicator.h"
#include "collective/fusion/fusion.h"
#include "collective/fusion/rounds.h"
#include "collective/fusion/tensor_stream.h"
#include "collective/shm/allreduce_table.h"
#include "collective/shm/round_board.h"
#include "collective/shm/shared_memory.h"
#include "collective/shm/zero_copy.h"

namespace hvdlite::collective {

// The same on all ranks.
struct NodeSizes {
  int num_nodes = 1;
  int num_ranks = 1;   // of all nodes
  int num_slices = 1;  // the ranks of the smallest node
};

// Every rank has a ring of slots in its segment. A round carries a chunk of the
// bucket through one of them:
//
//   1. every rank packs its part of the chunk into its slot, but for its own
//      slice, which nobody else needs;
//   2. every rank reduces its slice: from its tensors and the others' slots, in
//      the order of the ranks, into its slot (and, if there are other nodes,
//      with the ranks that hold the slice there);
//   3. every rank takes the slices that the others have reduced from their
//      slots into its tensors.
//
// There are as many slices as the smallest node has ranks, of equal size: those
// of every node's first ranks. Ranks beyond them have none.
//
// So an element has the same value on all ranks, and the same whatever chunk or
// slice it travels in. Steps 1, 2 and 3 of successive rounds alternate: a rank
// seldom waits for what another one is just doing. Prescaling happens in step
// 1, postscaling in step 2 or, if there are other nodes, in step 3; sums of
// 16-bit floats are prescaled in step 2, too. Compression is for what leaves
// the node.
//
// A slot is used again once all ranks have read it. Ranks wait asleep.
//
// Tensors that lie in memory from TensorMemoryRegistry, on all ranks at the
// same places, are neither packed nor copied: every rank reduces its slice from
// all ranks' tensors into all ranks' tensors, in one pass. To find out, a
// bucket that is not small begins with a round in which the ranks tell each
// other.
//
// Small buckets (kOneShot) have one step less: every rank packs everything, and
// reduces everything by itself, so that ranks meet only once.
//
// Collective, like Communicator; one calling thread at a time.
class NodeReducer {
 public:
  static constexpr size_t kSlots = 4;
  // Of one rank's slices under way between nodes.
  static constexpr size_t kAtOnce = 2;
  static constexpr size_t kNotesBytes = 4096;
  // What a reducer takes of every rank's segment: of the memory that it begins
  // with, and of the rings.
  static constexpr size_t kBoardBytes = RoundBoard::kBytes + kNotesBytes;
  static constexpr size_t kRingBytes = kSlots * AllreduceTable::kMaxChunkBytes;

  // `across` are the ranks of all nodes that hold the same slice, this rank
  // among them, or null if this rank has none or there is one node only.
  // References outlive the reducer.
  NodeReducer(const NodeMemory& board, const NodeSizes& sizes,
              Communicator* across,
              std::shared_ptr<const TensorMemoryRegistry> registry);

  // The memory that buckets travel through; before the first of them, and once.
  void SetRings(std::unique_ptr<NodeMemory> rings);
  bool has_rings() const { return rings_ != nullptr; }

  // As Communicator::AllreduceTensors, by kOneShot, kTwoShot or (needs
  // `across`) kHierarchical, the same on all ranks. Needs the rings.
  absl::Status Reduce(const AllreduceChoice& choice, const Reduction& reduction,
                      absl::Span<const FusedTensor> tensors, PhaseTimer& timer);

  void SetSpin(absl::Duration spin) { board_.set_spin(spin); }

 private:
  class Pipeline;
  class ZeroCopy;

  absl::Status ReduceOneShot(const Reduction& reduction,
                             const TensorStream& stream, PhaseTimer& timer);
  // The beginnings of the ranks' mappings if the bucket is eligible on all,
  // else nothing.
  absl::StatusOr<std::optional<std::vector<std::byte*>>> AgreeOnZeroCopy(
      absl::Span<const FusedTensor> tensors, PhaseTimer& timer);
  ZeroCopyNote* NoteOf(int rank, uint64_t round) const;
  absl::Span<std::byte> Slot(int rank, uint64_t round, size_t begin,
                             size_t bytes) const;

  const NodeMemory& board_memory_;
  std::unique_ptr<NodeMemory> rings_;
  const NodeSizes sizes_;
  Communicator* const across_;
  RoundBoard board_;
  ZeroCopyBuckets zero_copy_;
  uint64_t last_round_ = 0;
  // Slices of successive chunks; the memory is kept for the next bucket.
  std::array<std::vector<std::byte>, kAtOnce> compressed_;
};

}  // namespace hvdlite::collective
