// Collectives of many tensors at once: tensors are packed into the fusion
// buffer, communicated and unpacked, chunk by chunk.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "collective/communicator.h"
#include "collective/kernels/data_type.h"
#include "collective/kernels/reduction_kernels.h"

namespace hvdlite::collective {

// The memory that tensors are packed into, aligned to a page, so that any
// vector width and DMA engine is content. Move-only; owns its memory.
class FusionBuffer {
 public:
  static constexpr size_t kAlignment = 4096;

  // `bytes` is rounded up to a multiple of 64; at least 64. Contents are
  // undefined at first.
  explicit FusionBuffer(size_t bytes)
      : size_(std::max(kGranularity, (bytes + kGranularity - 1) / kGranularity *
                                         kGranularity)),
        data_(static_cast<std::byte*>(
            ::operator new (size_, std::align_val_t{kAlignment}))) {}

  absl::Span<std::byte> bytes() const { return {data_.get(), size_}; }

  // Never frees the memory, which somebody may still use. The buffer is not
  // used after this.
  void Abandon() {
    (void)data_.release();
    (void)scratch_.release();
  }

  // Memory beside it, likewise aligned, of at least `bytes`, for collectives
  // that need more. It is kept for the next batch, and grows: then what it held
  // is lost.
  absl::Span<std::byte> Scratch(size_t bytes) {
    if (scratch_ == nullptr || scratch_->size_ < bytes) {
      scratch_.reset();
      scratch_ = std::make_unique<FusionBuffer>(bytes);
    }
    return scratch_->bytes();
  }

 private:
  // A cache line, and any element whole.
  static constexpr size_t kGranularity = 64;

  struct Free {
    void operator()(std::byte* data) const {
      ::operator delete (data, std::align_val_t{kAlignment});
    }
  };
  size_t size_;
  std::unique_ptr<std::byte, Free> data_;
  std::unique_ptr<FusionBuffer> scratch_;
};

// One tensor of a batch, as contiguous bytes.
struct FusedTensor {
  // What this rank contributes. Empty: nothing (the op's neutral element; for
  // sums, zeros), while `output` has the tensor's size.
  absl::Span<const std::byte> input;
  // Where the result goes; may be `input` itself, must not overlap it
  // otherwise.
  absl::Span<std::byte> output;
};

// One tensor of a batch whose rows are distributed over the ranks. A partition
// lists the bytes of each rank's part; the parts lie one after the other in
// rank order.
struct PartitionedTensor {
  absl::Span<const std::byte> input;
  absl::Span<std::byte> output;      // does not overlap `input`
  std::vector<size_t> input_bytes;   // partition of `input`; see each function
  std::vector<size_t> output_bytes;  // partition of `output`
};

// What a chunk goes through, by the name that the timeline has for it: a string
// literal, given where the phase is measured.
class FusionPhase {
 public:
  consteval FusionPhase(const char* name) : name_(name) {}  // NOLINT: implicit

  absl::string_view name() const { return name_; }
  friend bool operator==(FusionPhase, FusionPhase) = default;

  static const FusionPhase kPack;
  // In the timeline after the backend and the operation: "MPI_ALLREDUCE".
  static const FusionPhase kCommunicate;
  static const FusionPhase kUnpack;

 private:
  absl::string_view name_;
};
inline constexpr FusionPhase FusionPhase::kPack = "MEMCPY_IN_FUSION_BUFFER";
inline constexpr FusionPhase FusionPhase::kCommunicate = "COMMUNICATE";
inline constexpr FusionPhase FusionPhase::kUnpack = "MEMCPY_OUT_FUSION_BUFFER";

// What the caller wants to know and do while a batch runs; each may be empty.
struct FusionHooks {
  // A phase of one chunk is over.
  std::function<void(FusionPhase phase, int64_t chunk, int64_t start_ns,
                     int64_t end_ns)>
      on_phase = {};
  // How a batch is reduced, where the communicator chooses among algorithms;
  // the last call counts.
  std::function<void(absl::string_view algorithm)> on_algorithm = {};
  // Before between_chunks: the share of the call that is done, from 0 to 1. It
  // never shrinks.
  std::function<void(double share)> on_progress = {};
  // Called after every chunk but the last; must not use the communicator. An
  // error ends the batch.
  std::function<absl::Status()> between_chunks = {};
  // The same, now and then while this rank waits for others inside a chunk,
  // where the communicator does not block in a library of its own.
  std::function<absl::Status()> while_waiting = {};
};

// A communicator's fusion buffer and the clock that times the phases.
struct FusionResources {
  Communicator& communicator;
  FusionBuffer& buffer;  // its size is the chunk size
  const base::Clock& clock;
};

// postscale * (op over ranks(prescale * x) / divisor). Integers are divided
// exactly; see Factor for how they are scaled. Sums of 16-bit floats do not
// overflow on their way where their result, or the inputs' average, is in range
// (see Wire and ReduceAll).
struct Reduction {
  DataType dtype = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  double prescale = 1;
  double postscale = 1;
  int64_t divisor = 1;  // of an average; positive
  Compression compression = Compression::kNone;

  Factor factor() const { return {postscale, divisor}; }
};

// Reduces every tensor into its output. All ranks pass tensors of the same
// sizes in the same order and the same reduction; tensors are aligned to their
// elements. A world of one copies (and scales, and rounds as compression
// would) without the buffer, and calls no hooks. Errors: InvalidArgument,
// before anything is communicated, when an input is neither empty nor of its
// output's size; the communicator's first error. Outputs are then unspecified.
absl::Status FusedAllreduce(const FusionResources& resources,
                            const Reduction& reduction,
                            absl::Span<const FusedTensor> tensors,
                            const FusionHooks& hooks);

// As FusedAllreduce, but combines the ranks' tensors by Adasum, each tensor by
// itself: two gradients that are orthogonal are added, two that are parallel
// are averaged. Maleki et al., "Scaling Distributed Training with Adaptive
// Summation" (2020), sections 3 and 4: a binary tree over the ranks whose pairs
// combine as
//
//   a (1 - a.b / (2 a.a)) + b (1 - a.b / (2 b.b))
//
// with scalar products in double; a term whose vector is zero is dropped.
//
// The tree has as many leaves as the largest power of two that is not above
// size(); `extra` are the ranks beyond. Leaf i is, for i < extra, the
// combination of ranks 2i and 2i+1; otherwise it is rank i + extra. Leaves 2j
// and 2j+1 combine to node j of the next level, nodes 2j and 2j+1 of that to
// node j of the one above, and so on to the root. So nodes are ranges of ranks
// and neighbours combine first. Vectors travel by recursive vector halving and
// distance doubling, and back.
//
// Prescaled inputs and the result of every combination are rounded to the wire
// type (that of `compression`, else `dtype`; see Wire). Combinations are
// computed in float32, in double where the wire type is float64. Empty inputs
// count as zero vectors. Needs a float type (InvalidArgument otherwise) and
// memory for twice the batch (FusionBuffer::Scratch); reduction.op is not used.
// Every rank ends with the same bits.
absl::Status FusedAdasum(const FusionResources& resources,
                         const Reduction& reduction,
                         absl::Span<const FusedTensor> tensors,
                         const FusionHooks& hooks);

// output = root's input, for every tensor; inputs of other ranks are not read.
// Data types do not matter. All ranks pass tensors of the same sizes in the
// same order. A world of one copies, and calls no hooks. Errors:
// InvalidArgument, before anything is communicated, when the root's input does
// not have its output's size; the communicator's first error.
absl::Status FusedBroadcast(const FusionResources& resources, int root,
                            absl::Span<const FusedTensor> tensors,
                            const FusionHooks& hooks);

// The collectives below are of tensors whose rows are distributed over the
// ranks. All ranks pass as many tensors in the same order. Each rank's part of
// a chunk is at most a size()-th of the fusion buffer, but never less than 64
// bytes. A world of one copies (and scales) without the buffer, and calls no
// hooks. Errors: InvalidArgument, before anything is communicated, when a span
// and its partition do not fit together; the communicator's first error.
// Outputs are then unspecified.

// output gets every rank's input: output_bytes[r] bytes from rank r, the same
// list on every rank. input_bytes is not used.
absl::Status FusedAllgather(const FusionResources& resources,
                            absl::Span<const PartitionedTensor> tensors,
                            const FusionHooks& hooks);

// output gets the reduction of this rank's part of `input`: input_bytes[r]
// bytes go to rank r, the same list on every rank. output_bytes is not used.
absl::Status FusedReduceScatter(const FusionResources& resources,
                                const Reduction& reduction,
                                absl::Span<const PartitionedTensor> tensors,
                                const FusionHooks& hooks);

// output gets a part of every rank's input: input_bytes[r] bytes go to rank r,
// output_bytes[r] come from it. The ranks' lists fit together.
absl::Status FusedAlltoall(const FusionResources& resources,
                           absl::Span<const PartitionedTensor> tensors,
                           const FusionHooks& hooks);

}  // namespace hvdlite::collective
