#include "collective/fusion/rounds.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "collective/fusion/tensor_stream.h"
#include "collective/fusion/wire.h"
#include "collective/ring/poll_pause.h"

namespace hvdlite::collective {
namespace {

absl::Status NotWholeElements(size_t tensor, absl::string_view what,
                              size_t bytes, size_t element_bytes) {
  return absl::InvalidArgumentError(absl::StrCat(
      "tensor ", tensor, " of the bucket has ", bytes, " bytes", what,
      ", not a whole number of elements of ", element_bytes, " bytes"));
}

constexpr size_t kCacheLine = 64;
// Smaller chunks do not travel beside one another.
constexpr size_t kSmallestSlot = size_t{128} << 10;

// How many chunks of a bucket of `bytes` are under way at a time: as many as
// still are large enough for that.
size_t SlotsOf(const Communicator& communicator, size_t buffer_bytes,
               size_t bytes) {
  size_t slots = std::max<size_t>(1, buffer_bytes / kSmallestSlot);
  slots = std::min(slots, communicator.allreduces_at_once(bytes));
  while (slots > 1 && communicator.allreduces_at_once(
                          std::min(bytes, buffer_bytes / slots)) == 1) {
    --slots;
  }
  return slots;
}

size_t BeginOf(int64_t chunk, size_t chunk_bytes) {
  return static_cast<size_t>(chunk) * chunk_bytes;
}

}  // namespace

absl::Status CheckTensors(absl::Span<const FusedTensor> tensors,
                          size_t element_bytes, bool input_optional) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const size_t input_bytes = tensors[i].input.size();
    const size_t output_bytes = tensors[i].output.size();
    if (output_bytes % element_bytes != 0) {
      return NotWholeElements(i, "", output_bytes, element_bytes);
    }
    if (input_bytes != output_bytes && !(input_optional && input_bytes == 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", i, " of the bucket has ", input_bytes,
                       " bytes of input, but ", output_bytes, " of output"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckReduction(const Reduction& reduction) {
  const DataType dtype = reduction.dtype;
  if (SizeOf(dtype) == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the bucket has the unknown data type ", static_cast<int>(dtype)));
  }
  if (!HasOp(dtype, reduction.op)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the bucket is of ", NameOf(dtype), ", which has no ",
                     NameOf(reduction.op)));
  }
  return absl::OkStatus();
}

absl::Status CheckPartition(size_t tensor, absl::string_view what, size_t bytes,
                            absl::Span<const size_t> partition, int size,
                            size_t element_bytes) {
  if (partition.size() != static_cast<size_t>(size)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor ", tensor, " of the bucket has a partition of its ", what,
        " for ", partition.size(), " ranks, not for ", size));
  }
  for (size_t rank = 0; rank < partition.size(); ++rank) {
    if (partition[rank] % element_bytes != 0) {
      return NotWholeElements(tensor,
                              absl::StrCat(" of ", what, " for rank ", rank),
                              partition[rank], element_bytes);
    }
  }
  const size_t sum =
      std::accumulate(partition.begin(), partition.end(), size_t{0});
  if (sum != bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", tensor, " of the bucket has ", bytes,
                     " bytes of ", what, ", but a partition of ", sum));
  }
  return absl::OkStatus();
}

absl::Status CheckPart(size_t tensor, absl::string_view what, size_t bytes,
                       absl::Span<const size_t> partition, int rank) {
  if (bytes == partition[rank]) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "tensor ", tensor, " of the bucket has ", bytes, " bytes of ", what,
      ", but rank ", rank, " has a part of ", partition[rank]));
}

absl::Status ReduceByChunks(Communicator& communicator,
                            absl::Span<std::byte> buffer,
                            const Reduction& reduction,
                            absl::Span<const FusedTensor> tensors,
                            PhaseTimer& timer) {
  const Wire wire(reduction, communicator.size());
  const TensorStream stream(tensors);
  const size_t slots =
      SlotsOf(communicator, buffer.size(), wire.WireBytes(stream.bytes()));
  const size_t slot_bytes = buffer.size() / slots / kCacheLine * kCacheLine;
  const size_t chunk_bytes = wire.BytesThatFit(slot_bytes);
  const int64_t num_chunks = NumRounds(stream.bytes(), chunk_bytes);
  // Of the tensors, and in the wire type.
  const auto bytes_of = [&](int64_t chunk) {
    return std::min(chunk_bytes, stream.bytes() - BeginOf(chunk, chunk_bytes));
  };
  const auto memory_of = [&](int64_t chunk) {
    return buffer.subspan(static_cast<size_t>(chunk) % slots * slot_bytes,
                          wire.WireBytes(bytes_of(chunk)));
  };
  // Calls visit(piece, its memory in the wire type).
  const auto for_each_piece = [&](int64_t chunk, const auto& visit) {
    const absl::Span<std::byte> memory = memory_of(chunk);
    stream.ForEachPiece(
        BeginOf(chunk, chunk_bytes), bytes_of(chunk),
        [&](const FusedTensor& piece, size_t at) {
          visit(piece, memory.subspan(wire.WireBytes(at),
                                      wire.WireBytes(piece.output.size())));
        });
  };
  const auto pack = [&](int64_t chunk) {
    for_each_piece(chunk,
                   [&](const FusedTensor& piece, absl::Span<std::byte> to) {
                     if (piece.input.empty()) {
                       wire.PackNeutral(to);
                     } else {
                       wire.Pack(piece.input, to);
                     }
                   });
    timer.PhaseOver(FusionPhase::kPack, chunk);
  };
  const auto unpack = [&](int64_t chunk) {
    timer.PhaseOver(FusionPhase::kCommunicate, chunk);
    for_each_piece(chunk,
                   [&](const FusedTensor& piece, absl::Span<std::byte> from) {
                     wire.Unpack(from, piece.output);
                   });
    timer.PhaseOver(FusionPhase::kUnpack, chunk);
  };
  const auto pause = [&](int64_t done) {
    return timer.Pause(static_cast<double>(done) /
                       static_cast<double>(num_chunks));
  };

  if (slots == 1) {
    for (int64_t chunk = 0; chunk < num_chunks; ++chunk) {
      if (chunk > 0) HVDLITE_RETURN_IF_ERROR(pause(chunk));
      pack(chunk);
      HVDLITE_RETURN_IF_ERROR(
          communicator.Allreduce(memory_of(chunk), wire.type(), reduction.op));
      unpack(chunk);
    }
    return absl::OkStatus();
  }

  timer.AlgorithmChosen("ring");
  int64_t begun = 0;
  PollPause wait(communicator.spin());
  for (int64_t done = 0; done < num_chunks;) {
    const bool room =
        begun < num_chunks && begun - done < static_cast<int64_t>(slots);
    if (room) {
      pack(begun);
      HVDLITE_RETURN_IF_ERROR(communicator.StartAllreduce(
          memory_of(begun), wire.type(), reduction.op));
      ++begun;
    }
    HVDLITE_ASSIGN_OR_RETURN(const Headway headway,
                             communicator.AdvanceAllreduces());
    if (headway == Headway::kDone) {
      unpack(done);
      ++done;
      if (done < num_chunks) HVDLITE_RETURN_IF_ERROR(pause(done));
    }
    if (room || headway != Headway::kNone) {
      wait.Reset();
    } else if (wait.Pause()) {
      HVDLITE_RETURN_IF_ERROR(timer.Serve());
    }
  }
  return absl::OkStatus();
}

}  // namespace hvdlite::collective
