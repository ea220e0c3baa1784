#include "collective/shm/node_reducer.h"

#include <algorithm>
#include <deque>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "collective/fusion/wire.h"
#include "collective/kernels/reduction_kernels.h"
#include "collective/ring/poll_pause.h"

namespace hvdlite::collective {
namespace {

constexpr size_t kCacheLine = 64;

size_t RoundUp(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

struct Stretch {
  size_t begin = 0;
  size_t bytes = 0;
  size_t end() const { return begin + bytes; }
};

// What `rank` reduces of a chunk; nothing if there are no more slices.
Stretch SliceOf(int rank, int num_slices, size_t chunk_bytes) {
  if (rank >= num_slices) return {chunk_bytes, 0};
  const size_t slices = static_cast<size_t>(num_slices);
  const size_t slice = RoundUp((chunk_bytes + slices - 1) / slices, kCacheLine);
  const size_t begin = std::min(chunk_bytes, slice * static_cast<size_t>(rank));
  return {begin, std::min(slice, chunk_bytes - begin)};
}

// Whether elements are narrower than what they are added in: then scaling the
// sum alone loses less than scaling every element before, and overflows later.
bool ScalesSumAlone(const Reduction& reduction) {
  return reduction.op == ReduceOp::kSum && IsNarrowFloat(reduction.dtype);
}

// What is to be done where the node has all inputs: nothing is compressed.
Reduction Inside(Reduction reduction) {
  reduction.compression = Compression::kNone;
  if (ScalesSumAlone(reduction)) {
    reduction.postscale *= reduction.prescale;
    reduction.prescale = 1;
  }
  return reduction;
}

// What is left to do with what the nodes have.
Reduction Across(Reduction reduction) {
  if (!ScalesSumAlone(reduction)) reduction.prescale = 1;
  return reduction;
}

using Inputs = absl::InlinedVector<const std::byte*, 16>;

// As the timeline has it.
absl::string_view DescriptionOf(AllreduceAlgorithm algorithm) {
  switch (algorithm) {
    case AllreduceAlgorithm::kOneShot:
      return "shared memory, one-shot";
    case AllreduceAlgorithm::kTwoShot:
      return "shared memory, two-shot";
    case AllreduceAlgorithm::kHierarchical:
      return "shared memory, hierarchical";
    case AllreduceAlgorithm::kFlat:
      break;
  }
  return NameOf(algorithm);
}

}  // namespace

NodeReducer::NodeReducer(const NodeMemory& board, const NodeSizes& sizes,
                         Communicator* across,
                         std::shared_ptr<const TensorMemoryRegistry> registry)
    : board_memory_(board),
      sizes_(sizes),
      across_(across),
      board_(board),
      zero_copy_(board.rank(), board.size(), std::move(registry)) {}

void NodeReducer::SetRings(std::unique_ptr<NodeMemory> rings) {
  rings_ = std::move(rings);
}

ZeroCopyNote* NodeReducer::NoteOf(int rank, uint64_t round) const {
  static_assert(kSlots * sizeof(ZeroCopyNote) <= kNotesBytes);
  std::byte* const notes =
      board_memory_.segment(rank).data() + RoundBoard::kBytes;
  return reinterpret_cast<ZeroCopyNote*>(notes) + round % kSlots;
}

absl::Span<std::byte> NodeReducer::Slot(int rank, uint64_t round, size_t begin,
                                        size_t bytes) const {
  const size_t slot = round % kSlots;
  return rings_->segment(rank).subspan(
      slot * AllreduceTable::kMaxChunkBytes + begin, bytes);
}

// A bucket whose tensors all ranks see.
class NodeReducer::ZeroCopy {
 public:
  // `begins` are where the tensors' memory begins in this process, by rank.
  ZeroCopy(NodeReducer& reducer, const std::vector<std::byte*>& begins,
           const Reduction& reduction, const TensorStream& stream,
           PhaseTimer& timer)
      : reducer_(reducer),
        begins_(begins),
        reduction_(reduction),
        stream_(stream),
        timer_(timer) {}

  absl::Status Run() {
    const int rank = reducer_.board_.rank();
    const Stretch own =
        SliceOf(rank, reducer_.sizes_.num_slices, stream_.bytes());
    int64_t chunk = 0;
    for (size_t at = own.begin; at < own.end(); at += kPauseBytes, ++chunk) {
      if (chunk > 0) {
        HVDLITE_RETURN_IF_ERROR(
            timer_.Pause(static_cast<double>(at - own.begin) /
                         static_cast<double>(own.bytes)));
      }
      stream_.ForEachPiece(
          at, std::min(kPauseBytes, own.end() - at),
          [&](const FusedTensor& piece, size_t) { ReducePiece(piece); });
      timer_.PhaseOver(FusionPhase::kCommunicate, chunk);
    }
    const uint64_t round = ++reducer_.last_round_;
    reducer_.board_.PublishLater(RoundBoard::kRead, round);
    reducer_.board_.PublishLater(RoundBoard::kPacked, round);
    reducer_.board_.Publish(RoundBoard::kReduced, round);
    HVDLITE_RETURN_IF_ERROR(reducer_.board_.WaitForAll(
        RoundBoard::kReduced, round, [this] { return timer_.Serve(); }));
    timer_.PhaseOver(FusionPhase::kCommunicate, chunk);
    return absl::OkStatus();
  }

 private:
  // What is reduced between two pauses.
  static constexpr size_t kPauseBytes = size_t{2} << 20;

  void ReducePiece(const FusedTensor& piece) const {
    const size_t own = static_cast<size_t>(reducer_.board_.rank());
    const ptrdiff_t offset = piece.output.data() - begins_[own];
    Inputs inputs;
    absl::InlinedVector<std::byte*, 16> outputs;
    for (std::byte* const begin : begins_) {
      inputs.push_back(begin + offset);
      outputs.push_back(begin + offset);
    }
    ReduceAll(reduction_.op, reduction_.dtype, reduction_.factor(), inputs,
              absl::MakeSpan(outputs), piece.output.size());
  }

  NodeReducer& reducer_;
  const std::vector<std::byte*>& begins_;
  const Reduction& reduction_;
  const TensorStream& stream_;
  PhaseTimer& timer_;
};

// A bucket on its way through the slots.
class NodeReducer::Pipeline {
 public:
  Pipeline(NodeReducer& reducer, const AllreduceChoice& choice,
           const Reduction& reduction, const TensorStream& stream,
           PhaseTimer& timer);

  absl::Status Run();

 private:
  // The three steps of a round; chunks are numbered from 0. Across nodes the
  // second one goes on while the next chunk is reduced, and is ended apart.
  absl::Status Pack(int64_t chunk);
  absl::Status ReduceSlice(int64_t chunk);
  absl::Status EndSlice(int64_t chunk);
  absl::Status Unpack(int64_t chunk);

  // This rank's slice of the chunk, in its slot.
  absl::Span<std::byte> OwnSlice(int64_t chunk) const;
  // What of that travels between nodes.
  absl::Span<std::byte> TravellingSlice(int64_t chunk);
  absl::Status BeginAcross(int64_t chunk);
  // Carries on what is under way between nodes, without waiting.
  absl::StatusOr<Headway> AdvanceAcross();
  Stretch ChunkAt(int64_t chunk) const;
  uint64_t RoundOf(int64_t chunk) const {
    return first_round_ + static_cast<uint64_t>(chunk);
  }
  void PackStretch(int64_t chunk, const Stretch& chunk_at, size_t begin,
                   size_t end) const;
  absl::Status WaitForAll(RoundBoard::Counter counter, uint64_t value) {
    const auto serve = [this] {
      for (Headway headway = Headway::kSome; headway != Headway::kNone;) {
        HVDLITE_ASSIGN_OR_RETURN(headway, AdvanceAcross());
      }
      return timer_.Serve();
    };
    // Slices travel on while this rank waits for its node.
    return reducer_.board_.WaitForAll(counter, value, serve,
                                      travelling_.empty()
                                          ? RoundBoard::kLongestSleep
                                          : absl::Microseconds(50));
  }

  NodeReducer& reducer_;
  const int rank_;
  const int size_;
  const int num_slices_;
  const Reduction inside_;  // of the node: nothing is compressed here
  const Wire wire_;         // into the slots; sums are taken past them
  const TensorStream& stream_;
  PhaseTimer& timer_;
  const bool across_;       // the nodes
  const Wire across_wire_;  // what has been added inside the nodes
  const bool compresses_;
  const size_t chunk_bytes_;
  const bool overlaps_;             // slices travel while the next is reduced
  std::deque<int64_t> travelling_;  // chunks whose slices are under way
  const int64_t num_chunks_;
  const uint64_t first_round_;
  // This rank's slice is reduced from the tensors, and into them.
  const bool from_tensors_;
  const bool into_tensors_;
  const StoreHint hint_;
};

NodeReducer::Pipeline::Pipeline(NodeReducer& reducer,
                                const AllreduceChoice& choice,
                                const Reduction& reduction,
                                const TensorStream& stream, PhaseTimer& timer)
    : reducer_(reducer),
      rank_(reducer.board_.rank()),
      size_(reducer.board_.size()),
      num_slices_(reducer.sizes_.num_slices),
      inside_(Inside(reduction)),
      wire_(inside_, /*num_inputs=*/1),
      stream_(stream),
      timer_(timer),
      across_(choice.algorithm == AllreduceAlgorithm::kHierarchical),
      across_wire_(Across(reduction), reducer.sizes_.num_ranks),
      compresses_(across_ && across_wire_.type() != inside_.dtype),
      chunk_bytes_(choice.chunk_bytes),
      overlaps_(
          across_ && reducer.across_ != nullptr &&
          reducer.across_->allreduces_at_once(
              across_wire_.WireBytes(std::min(chunk_bytes_, stream.bytes())) /
              static_cast<size_t>(num_slices_)) > 1),
      num_chunks_(NumRounds(stream.bytes(), chunk_bytes_)),
      first_round_(reducer.last_round_ + 1),
      from_tensors_(inside_.prescale == 1),
      into_tensors_(!across_),
      hint_(choice.streaming ? StoreHint::kStreaming : StoreHint::kCached) {}

Stretch NodeReducer::Pipeline::ChunkAt(int64_t chunk) const {
  const size_t begin = static_cast<size_t>(chunk) * chunk_bytes_;
  return {begin, std::min(chunk_bytes_, stream_.bytes() - begin)};
}

absl::Status NodeReducer::Pipeline::Run() {
  reducer_.last_round_ += static_cast<uint64_t>(num_chunks_);
  // How many steps after it was packed a chunk is ended and unpacked.
  const int64_t lag = overlaps_ ? 2 : 1;
  for (int64_t step = 0; step < num_chunks_ + lag + 1; ++step) {
    const int64_t reduced = step - 1;
    const int64_t ended = step - lag;
    const int64_t unpacked = step - lag - 1;
    if (step > 0) {
      HVDLITE_RETURN_IF_ERROR(
          timer_.Pause(static_cast<double>(std::max<int64_t>(unpacked, 0)) /
                       static_cast<double>(num_chunks_)));
    }
    if (step < num_chunks_) {
      HVDLITE_RETURN_IF_ERROR(Pack(step));
      timer_.PhaseOver(FusionPhase::kPack, step);
    }
    if (reduced >= 0 && reduced < num_chunks_) {
      HVDLITE_RETURN_IF_ERROR(ReduceSlice(reduced));
      if (overlaps_) timer_.PhaseOver(FusionPhase::kCommunicate, reduced);
    }
    if (ended >= 0 && ended < num_chunks_) {
      HVDLITE_RETURN_IF_ERROR(EndSlice(ended));
      timer_.PhaseOver(FusionPhase::kCommunicate, ended);
    }
    if (unpacked >= 0) {
      HVDLITE_RETURN_IF_ERROR(Unpack(unpacked));
      timer_.PhaseOver(FusionPhase::kUnpack, unpacked);
    }
  }
  return absl::OkStatus();
}

void NodeReducer::Pipeline::PackStretch(int64_t chunk, const Stretch& chunk_at,
                                        size_t begin, size_t end) const {
  const absl::Span<std::byte> slot =
      reducer_.Slot(rank_, RoundOf(chunk), begin, end - begin);
  stream_.ForEachPiece(chunk_at.begin + begin, end - begin,
                       [&](const FusedTensor& piece, size_t at) {
                         const auto to = slot.subspan(at, piece.output.size());
                         if (piece.input.empty()) {
                           wire_.PackNeutral(to);
                         } else {
                           wire_.Pack(piece.input, to);
                         }
                       });
}

absl::Status NodeReducer::Pipeline::Pack(int64_t chunk) {
  const uint64_t round = RoundOf(chunk);
  if (round > kSlots) {
    HVDLITE_RETURN_IF_ERROR(WaitForAll(RoundBoard::kRead, round - kSlots));
  }
  const Stretch at = ChunkAt(chunk);
  const Stretch own = SliceOf(rank_, num_slices_, at.bytes);
  if (from_tensors_) {
    PackStretch(chunk, at, 0, own.begin);
    PackStretch(chunk, at, own.end(), at.bytes);
  } else {
    PackStretch(chunk, at, 0, at.bytes);
  }
  reducer_.board_.Publish(RoundBoard::kPacked, round);
  return absl::OkStatus();
}

absl::Status NodeReducer::Pipeline::ReduceSlice(int64_t chunk) {
  const uint64_t round = RoundOf(chunk);
  HVDLITE_RETURN_IF_ERROR(WaitForAll(RoundBoard::kPacked, round));
  const Stretch at = ChunkAt(chunk);
  const Stretch own = SliceOf(rank_, num_slices_, at.bytes);
  Inputs slices;
  for (int rank = 0; rank < size_; ++rank) {
    slices.push_back(reducer_.Slot(rank, round, own.begin, own.bytes).data());
  }
  const absl::Span<std::byte> result =
      reducer_.Slot(rank_, round, own.begin, own.bytes);
  const Factor factor = into_tensors_ ? inside_.factor()
                        : compresses_ ? Factor(1)
                                      : Factor(across_wire_.prescale());
  stream_.ForEachPiece(
      at.begin + own.begin, own.bytes,
      [&](const FusedTensor& piece, size_t offset) {
        Inputs inputs;
        for (int rank = 0; rank < size_; ++rank) {
          if (rank != rank_ || !from_tensors_) {
            inputs.push_back(slices[static_cast<size_t>(rank)] + offset);
          } else if (!piece.input.empty()) {
            inputs.push_back(piece.input.data());
          }
        }
        if (inputs.empty()) {  // the only rank of its node has none
          return wire_.PackNeutral(result.subspan(offset, piece.output.size()));
        }
        absl::InlinedVector<std::byte*, 2> outputs = {result.data() + offset};
        if (into_tensors_) outputs.push_back(piece.output.data());
        ReduceAll(inside_.op, inside_.dtype, factor, inputs,
                  absl::MakeSpan(outputs), piece.output.size());
      });
  return across_ ? BeginAcross(chunk) : absl::OkStatus();
}

absl::Span<std::byte> NodeReducer::Pipeline::OwnSlice(int64_t chunk) const {
  const Stretch own = SliceOf(rank_, num_slices_, ChunkAt(chunk).bytes);
  return reducer_.Slot(rank_, RoundOf(chunk), own.begin, own.bytes);
}

absl::Span<std::byte> NodeReducer::Pipeline::TravellingSlice(int64_t chunk) {
  const absl::Span<std::byte> slice = OwnSlice(chunk);
  if (!compresses_) return slice;
  const size_t bytes = across_wire_.WireBytes(slice.size());
  std::vector<std::byte>& memory =
      reducer_.compressed_[static_cast<size_t>(chunk) % kAtOnce];
  if (memory.size() < bytes) memory.resize(bytes);
  return absl::MakeSpan(memory).first(bytes);
}

absl::Status NodeReducer::Pipeline::BeginAcross(int64_t chunk) {
  const absl::Span<std::byte> slice = OwnSlice(chunk);
  if (slice.empty()) return absl::OkStatus();  // on the other nodes, too
  const absl::Span<std::byte> travelling = TravellingSlice(chunk);
  if (compresses_) across_wire_.Pack(slice, travelling);
  const DataType dtype = compresses_ ? across_wire_.type() : inside_.dtype;
  Communicator& across = *reducer_.across_;
  if (!overlaps_) return across.Allreduce(travelling, dtype, inside_.op);
  travelling_.push_back(chunk);
  HVDLITE_RETURN_IF_ERROR(across.StartAllreduce(travelling, dtype, inside_.op));
  return AdvanceAcross().status();
}

absl::StatusOr<Headway> NodeReducer::Pipeline::AdvanceAcross() {
  if (travelling_.empty()) return Headway::kNone;
  HVDLITE_ASSIGN_OR_RETURN(const Headway headway,
                           reducer_.across_->AdvanceAllreduces());
  if (headway == Headway::kDone) travelling_.pop_front();
  return headway;
}

absl::Status NodeReducer::Pipeline::EndSlice(int64_t chunk) {
  if (overlaps_) {
    PollPause wait(reducer_.across_->spin());
    while (!travelling_.empty() && travelling_.front() <= chunk) {
      HVDLITE_ASSIGN_OR_RETURN(const Headway headway, AdvanceAcross());
      if (headway != Headway::kNone) {
        wait.Reset();
      } else if (wait.Pause()) {
        HVDLITE_RETURN_IF_ERROR(timer_.Serve());
      }
    }
  }
  const absl::Span<std::byte> slice = OwnSlice(chunk);
  if (compresses_ && !slice.empty()) {
    across_wire_.Unpack(TravellingSlice(chunk), slice);
  }
  reducer_.board_.Publish(RoundBoard::kReduced, RoundOf(chunk));
  return absl::OkStatus();
}

absl::Status NodeReducer::Pipeline::Unpack(int64_t chunk) {
  const uint64_t round = RoundOf(chunk);
  HVDLITE_RETURN_IF_ERROR(WaitForAll(RoundBoard::kReduced, round));
  const Stretch at = ChunkAt(chunk);
  const Factor factor =
      into_tensors_ || compresses_ ? Factor(1) : across_wire_.postscale();
  for (int rank = 0; rank < num_slices_; ++rank) {
    if (rank == rank_ && into_tensors_) continue;
    const Stretch slice = SliceOf(rank, num_slices_, at.bytes);
    const absl::Span<const std::byte> from =
        reducer_.Slot(rank, round, slice.begin, slice.bytes);
    stream_.ForEachPiece(at.begin + slice.begin, slice.bytes,
                         [&](const FusedTensor& piece, size_t offset) {
                           CopyScaled(inside_.dtype, factor,
                                      from.subspan(offset, piece.output.size()),
                                      piece.output, hint_);
                         });
  }
  reducer_.board_.Publish(RoundBoard::kRead, round);
  return absl::OkStatus();
}

absl::Status NodeReducer::ReduceOneShot(const Reduction& reduction,
                                        const TensorStream& stream,
                                        PhaseTimer& timer) {
  const uint64_t round = ++last_round_;
  const Reduction inside = Inside(reduction);
  const Wire wire(inside, /*num_inputs=*/1);
  const auto serve = [&] { return timer.Serve(); };
  if (round > kSlots) {
    HVDLITE_RETURN_IF_ERROR(
        board_.WaitForAll(RoundBoard::kRead, round - kSlots, serve));
  }
  const size_t bytes = stream.bytes();
  const absl::Span<std::byte> own = Slot(board_.rank(), round, 0, bytes);
  stream.ForEachPiece(0, bytes, [&](const FusedTensor& piece, size_t at) {
    const auto to = own.subspan(at, piece.output.size());
    if (piece.input.empty()) {
      wire.PackNeutral(to);
    } else {
      wire.Pack(piece.input, to);
    }
  });
  // Whoever packs the next round has read this one.
  board_.PublishLater(RoundBoard::kRead, round - 1);
  board_.Publish(RoundBoard::kPacked, round);
  timer.PhaseOver(FusionPhase::kPack, 0);
  HVDLITE_RETURN_IF_ERROR(board_.WaitForAll(RoundBoard::kPacked, round, serve));
  timer.PhaseOver(FusionPhase::kCommunicate, 0);
  stream.ForEachPiece(0, bytes, [&](const FusedTensor& piece, size_t at) {
    Inputs inputs;
    for (int rank = 0; rank < board_.size(); ++rank) {
      inputs.push_back(Slot(rank, round, at, piece.output.size()).data());
    }
    std::byte* const output = piece.output.data();
    ReduceAll(inside.op, inside.dtype, inside.factor(), inputs,
              absl::MakeConstSpan(&output, 1), piece.output.size());
  });
  timer.PhaseOver(FusionPhase::kUnpack, 0);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::vector<std::byte*>>>
NodeReducer::AgreeOnZeroCopy(absl::Span<const FusedTensor> tensors,
                             PhaseTimer& timer) {
  // The note of four rounds ago has been read: after every such round the ranks
  // meet again before the bucket is over.
  const uint64_t round = ++last_round_;
  *NoteOf(board_.rank(), round) = zero_copy_.Describe(tensors);
  board_.PublishLater(RoundBoard::kRead, round);  // its slot is not used
  board_.Publish(RoundBoard::kPacked, round);
  HVDLITE_RETURN_IF_ERROR(board_.WaitForAll(RoundBoard::kPacked, round,
                                            [&] { return timer.Serve(); }));
  absl::InlinedVector<ZeroCopyNote, 8> of_rank;
  for (int rank = 0; rank < board_.size(); ++rank) {
    of_rank.push_back(*NoteOf(rank, round));
  }
  return zero_copy_.Agree(of_rank);
}

absl::Status NodeReducer::Reduce(const AllreduceChoice& choice,
                                 const Reduction& reduction,
                                 absl::Span<const FusedTensor> tensors,
                                 PhaseTimer& timer) {
  const TensorStream stream(tensors);
  timer.AlgorithmChosen(DescriptionOf(choice.algorithm));
  if (choice.algorithm == AllreduceAlgorithm::kOneShot) {
    return ReduceOneShot(reduction, stream, timer);
  }
  // Across nodes, or where inputs are scaled, buckets are packed in any case.
  const Reduction inside = Inside(reduction);
  if (sizes_.num_nodes == 1 && inside.prescale == 1) {
    HVDLITE_ASSIGN_OR_RETURN(const auto begins,
                             AgreeOnZeroCopy(tensors, timer));
    if (begins.has_value()) {
      timer.AlgorithmChosen("shared memory, in place");
      return ZeroCopy(*this, *begins, inside, stream, timer).Run();
    }
  }
  return Pipeline(*this, choice, reduction, stream, timer).Run();
}

}  // namespace hvdlite::collective
