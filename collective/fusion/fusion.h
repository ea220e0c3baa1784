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

// The memory that tensors are packed into. It is page-aligned, which suits any
// vector width and DMA engine. Move-only; owns its memory.
class FusionBuffer {
 public:
  static constexpr size_t kAlignment = 4096;

  // `bytes` is rounded up to a multiple of 64, at least 64. Contents are
  // undefined at first.
  explicit FusionBuffer(size_t bytes)
      : size_(std::max(kGranularity, (bytes + kGranularity - 1) / kGranularity *
                                         kGranularity)),
        data_(static_cast<std::byte*>(
            ::operator new (size_, std::align_val_t{kAlignment}))) {}

  absl::Span<std::byte> bytes() const { return {data_.get(), size_}; }

  // Never frees the memory, since an operation may still use it. The buffer
  // must not be used afterwards.
  void Abandon() {
    (void)data_.release();
    (void)scratch_.release();
  }

  // More memory with the same alignment, at least `bytes`, for collectives that
  // need it. It is kept for the next bucket. When it grows, its content is
  // lost.
  absl::Span<std::byte> Scratch(size_t bytes) {
    if (scratch_ == nullptr || scratch_->size_ < bytes) {
      scratch_.reset();
      scratch_ = std::make_unique<FusionBuffer>(bytes);
    }
    return scratch_->bytes();
  }

 private:
  // A cache line; a multiple of every element size.
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

// One tensor of a bucket, as contiguous bytes.
struct FusedTensor {
  // The contribution of this rank. Empty: the neutral element of the op (zeros
  // for sums); `output` has the tensor's size.
  absl::Span<const std::byte> input;
  // The destination of the result. It is `input` itself or does not overlap it.
  absl::Span<std::byte> output;
};

// One tensor of a bucket whose rows are distributed over the ranks. A partition
// lists the bytes of each rank's part; parts are back to back in rank order.
struct PartitionedTensor {
  absl::Span<const std::byte> input;
  absl::Span<std::byte> output;      // does not overlap `input`
  std::vector<size_t> input_bytes;   // partition of `input`; see each function
  std::vector<size_t> output_bytes;  // partition of `output`
};

// A phase of a chunk, by its name in the timeline: a string literal, given
// where the phase is measured.
class FusionPhase {
 public:
  consteval FusionPhase(const char* name) : name_(name) {}  // NOLINT: implicit

  absl::string_view name() const { return name_; }
  friend bool operator==(FusionPhase, FusionPhase) = default;

  static const FusionPhase kPack;
  // The timeline shows the backend and the operation: "MPI_ALLREDUCE".
  static const FusionPhase kCommunicate;
  static const FusionPhase kUnpack;

 private:
  absl::string_view name_;
};
inline constexpr FusionPhase FusionPhase::kPack = "MEMCPY_IN_FUSION_BUFFER";
inline constexpr FusionPhase FusionPhase::kCommunicate = "COMMUNICATE";
inline constexpr FusionPhase FusionPhase::kUnpack = "MEMCPY_OUT_FUSION_BUFFER";

// Callbacks of the caller while a bucket runs; each may be empty.
struct FusionHooks {
  // Called after each phase of a chunk.
  std::function<void(FusionPhase phase, int64_t chunk, int64_t start_ns,
                     int64_t end_ns)>
      on_phase = {};
  // Called with the algorithm, if the communicator chooses among several. The
  // last call counts.
  std::function<void(absl::string_view algorithm)> on_algorithm = {};
  // Called before between_chunks with the completed fraction of the call, from
  // 0 to 1. It never shrinks.
  std::function<void(double share)> on_progress = {};
  // Called after every chunk except the last. It must not use the communicator.
  // An error ends the bucket.
  std::function<absl::Status()> between_chunks = {};
  // Like between_chunks, but called now and then while this rank waits for
  // others inside a chunk, if the communicator does not block inside a library.
  std::function<absl::Status()> while_waiting = {};
};

// A communicator's fusion buffer and the clock that times the phases.
struct FusionResources {
  Communicator& communicator;
  FusionBuffer& buffer;  // its size is the chunk size
  const base::Clock& clock;
};

// Computes postscale * (op over ranks(prescale * x) / divisor). Integers are
// divided exactly; see Factor for their scaling. Intermediate sums of 16-bit
// floats do not overflow if the result, or the inputs' average, is in range
// (see Wire and ReduceAll()).
struct Reduction {
  DataType dtype = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  double prescale = 1;
  double postscale = 1;
  int64_t divisor = 1;  // for an average; positive
  Compression compression = Compression::kNone;

  Factor factor() const { return {postscale, divisor}; }
};

// Reduces every tensor into its output. All ranks pass tensors of the same
// sizes in the same order, and the same reduction. Tensors are aligned to their
// elements. A world of one copies (and scales, and rounds like the compression)
// without the buffer, and calls no hooks.
//
// Errors: InvalidArgument, before any communication, if an input is neither
// empty nor of its output's size; the communicator's first error. Outputs are
// then unspecified.
absl::Status FusedAllreduce(const FusionResources& resources,
                            const Reduction& reduction,
                            absl::Span<const FusedTensor> tensors,
                            const FusionHooks& hooks);

// Like FusedAllreduce(), but combines the ranks' tensors by Adasum, each tensor
// separately: orthogonal gradients are added, parallel gradients are averaged.
// Maleki et al., "Scaling Distributed Training with Adaptive Summation" (2020),
// sections 3 and 4. Pairs of nodes in a binary tree over the ranks combine as
//
//   a (1 - a.b / (2 a.a)) + b (1 - a.b / (2 b.b))
//
// with scalar products in double. A term whose vector is zero is dropped.
//
// The number of leaves is the largest power of two that is not above size();
// `extra` is the number of remaining ranks. Leaf i is the combination of ranks
// 2i and 2i+1 if i < extra; otherwise it is rank i + extra. Leaves 2j and 2j+1
// combine to node j of the next level, and so on up to the root. So nodes are
// ranges of ranks, and neighbours combine first. Vectors travel by recursive
// vector halving and distance doubling, and back.
//
// Prescaled inputs and the result of every combination are rounded to the wire
// type (that of `compression`, or `dtype`; see Wire). Combinations are computed
// in float32, or in double if the wire type is float64. Empty inputs count as
// zero vectors. Needs a float type (otherwise InvalidArgument) and memory for
// twice the bucket (FusionBuffer::Scratch). reduction.op is not used. Every
// rank gets the same bits.
absl::Status FusedAdasum(const FusionResources& resources,
                         const Reduction& reduction,
                         absl::Span<const FusedTensor> tensors,
                         const FusionHooks& hooks);

// Copies the root's input to every output; inputs of other ranks are not read.
// Data types do not matter. All ranks pass tensors of the same sizes in the
// same order. A world of one copies and calls no hooks. Errors:
// InvalidArgument, before any communication, if the root's input does not have
// its output's size; the communicator's first error.
absl::Status FusedBroadcast(const FusionResources& resources, int root,
                            absl::Span<const FusedTensor> tensors,
                            const FusionHooks& hooks);

// The collectives below are for tensors whose rows are distributed over the
// ranks. All ranks pass the same number of tensors in the same order. A rank's
// part of a chunk is at most 1/size() of the fusion buffer, but at least 64
// bytes. A world of one copies (and scales) without the buffer, and calls no
// hooks. Errors: InvalidArgument, before any communication, if a span does not
// fit its partition; the communicator's first error. Outputs are then
// unspecified.

// `output` gets every rank's input: output_bytes[r] bytes from rank r, the same
// list on every rank. input_bytes is not used.
absl::Status FusedAllgather(const FusionResources& resources,
                            absl::Span<const PartitionedTensor> tensors,
                            const FusionHooks& hooks);

// `output` gets the reduction of this rank's part of `input`: input_bytes[r]
// bytes go to rank r, the same list on every rank. output_bytes is not used.
absl::Status FusedReduceScatter(const FusionResources& resources,
                                const Reduction& reduction,
                                absl::Span<const PartitionedTensor> tensors,
                                const FusionHooks& hooks);

// `output` gets a part of every rank's input: input_bytes[r] bytes go to rank
// r, and output_bytes[r] bytes come from it. The lists of the ranks must match.
absl::Status FusedAlltoall(const FusionResources& resources,
                           absl::Span<const PartitionedTensor> tensors,
                           const FusionHooks& hooks);

}  // namespace hvdlite::collective
