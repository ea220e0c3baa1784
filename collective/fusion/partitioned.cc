#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "collective/communicator.h"
#include "collective/fusion/fusion.h"
#include "collective/fusion/rounds.h"
#include "collective/fusion/tensor_stream.h"
#include "collective/fusion/wire.h"
#include "collective/kernels/data_type.h"

namespace hvdlite::collective {
namespace {

// One stream per rank: its parts of the given span of all tensors.
template <typename Byte>
std::vector<MemoryStream<Byte>> StreamsOfRanks(
    absl::Span<const PartitionedTensor> tensors,
    absl::Span<Byte> PartitionedTensor::*span,
    std::vector<size_t> PartitionedTensor::*partition, int size) {
  std::vector<MemoryStream<Byte>> streams(size);
  for (const PartitionedTensor& tensor : tensors) {
    size_t begin = 0;
    for (int rank = 0; rank < size; ++rank) {
      const size_t bytes = (tensor.*partition)[rank];
      streams[rank].Append((tensor.*span).subspan(begin, bytes));
      begin += bytes;
    }
  }
  return streams;
}

template <typename Byte>
size_t LongestStream(const std::vector<MemoryStream<Byte>>& streams) {
  size_t longest = 0;
  for (const MemoryStream<Byte>& stream : streams) {
    longest = std::max(longest, stream.bytes_left());
  }
  return longest;
}

// Bytes of each stream in the next round: `max_bytes`, or the rest.
template <typename Byte>
std::vector<size_t> NextParts(const std::vector<MemoryStream<Byte>>& streams,
                              size_t max_bytes) {
  std::vector<size_t> parts;
  parts.reserve(streams.size());
  for (const MemoryStream<Byte>& stream : streams) {
    parts.push_back(std::min(max_bytes, stream.bytes_left()));
  }
  return parts;
}

// Calls visit(rank, part of `buffer`) for parts that are back to back. Returns
// the span that they occupy.
template <typename Visit>
absl::Span<std::byte> VisitParts(absl::Span<std::byte> buffer,
                                 absl::Span<const size_t> parts,
                                 const Visit& visit) {
  size_t begin = 0;
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    visit(rank, buffer.subspan(begin, parts[rank]));
    begin += parts[rank];
  }
  return buffer.first(begin);
}

// Memory for one round, in equal parts: the fusion buffer, or more if the parts
// would be too small for efficient messages.
class PartMemory {
 public:
  PartMemory(FusionBuffer& buffer, size_t num_parts)
      : part_bytes_(std::max(kGranularity, buffer.bytes().size() / num_parts /
                                               kGranularity * kGranularity)) {
    const size_t bytes = part_bytes_ * num_parts;
    const bool fits = bytes <= buffer.bytes().size();
    bytes_ = (fits ? buffer.bytes() : buffer.Scratch(bytes)).first(bytes);
  }

  size_t part_bytes() const { return part_bytes_; }  // a multiple of 64
  absl::Span<std::byte> bytes() const { return bytes_; }

 private:
  static constexpr size_t kGranularity = 64;

  const size_t part_bytes_;
  absl::Span<std::byte> bytes_;
};

absl::Status CheckBothPartitions(absl::Span<const PartitionedTensor> tensors,
                                 const Communicator& communicator) {
  const int size = communicator.size();
  const int me = communicator.rank();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const PartitionedTensor& tensor = tensors[i];
    HVDLITE_RETURN_IF_ERROR(CheckPartition(i, "input", tensor.input.size(),
                                           tensor.input_bytes, size));
    HVDLITE_RETURN_IF_ERROR(CheckPartition(i, "output", tensor.output.size(),
                                           tensor.output_bytes, size));
    if (tensor.input_bytes[me] != tensor.output_bytes[me]) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", i, " of the bucket: rank ", me,
                       " sends itself ", tensor.input_bytes[me],
                       " bytes, but expects ", tensor.output_bytes[me]));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FusedAllgather(const FusionResources& resources,
                            absl::Span<const PartitionedTensor> tensors,
                            const FusionHooks& hooks) {
  const int size = resources.communicator.size();
  const size_t me = resources.communicator.rank();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const PartitionedTensor& tensor = tensors[i];
    HVDLITE_RETURN_IF_ERROR(CheckPartition(i, "output", tensor.output.size(),
                                           tensor.output_bytes, size));
    HVDLITE_RETURN_IF_ERROR(
        CheckPart(i, "input", tensor.input.size(), tensor.output_bytes, me));
  }
  if (size == 1) {
    for (const PartitionedTensor& tensor : tensors) {
      std::copy(tensor.input.begin(), tensor.input.end(),
                tensor.output.begin());
    }
    return absl::OkStatus();
  }

  MemoryStream<const std::byte> mine;
  for (const PartitionedTensor& tensor : tensors) mine.Append(tensor.input);
  auto all = StreamsOfRanks(tensors, &PartitionedTensor::output,
                            &PartitionedTensor::output_bytes, size);
  const PartMemory memory(resources.buffer, size);

  PhaseTimer timer(resources.clock, hooks);
  std::vector<size_t> parts;
  absl::Span<std::byte> chunk;
  return RunRounds(
      NumRounds(LongestStream(all), memory.part_bytes()), timer,
      [&] {
        parts = NextParts(all, memory.part_bytes());
        chunk = VisitParts(memory.bytes(), parts,
                           [&](size_t rank, absl::Span<std::byte> part) {
                             if (rank == me) mine.Read(part);
                           });
      },
      [&] { return resources.communicator.Allgather(chunk, parts); },
      [&] {
        VisitParts(chunk, parts,
                   [&](size_t rank, absl::Span<const std::byte> part) {
                     all[rank].Write(part);
                   });
      });
}

absl::Status FusedReduceScatter(const FusionResources& resources,
                                const Reduction& reduction,
                                absl::Span<const PartitionedTensor> tensors,
                                const FusionHooks& hooks) {
  HVDLITE_RETURN_IF_ERROR(CheckReduction(reduction));
  const int size = resources.communicator.size();
  const size_t me = resources.communicator.rank();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const PartitionedTensor& tensor = tensors[i];
    HVDLITE_RETURN_IF_ERROR(CheckPartition(i, "input", tensor.input.size(),
                                           tensor.input_bytes, size,
                                           SizeOf(reduction.dtype)));
    HVDLITE_RETURN_IF_ERROR(
        CheckPart(i, "output", tensor.output.size(), tensor.input_bytes, me));
  }
  const Wire wire(reduction, size);
  if (size == 1) {
    for (const PartitionedTensor& tensor : tensors) {
      wire.PackAndUnpack(tensor.input, tensor.output);
    }
    return absl::OkStatus();
  }

  auto all = StreamsOfRanks(tensors, &PartitionedTensor::input,
                            &PartitionedTensor::input_bytes, size);
  MemoryStream<std::byte> mine;
  for (const PartitionedTensor& tensor : tensors) mine.Append(tensor.output);
  const PartMemory memory(resources.buffer, size);
  const size_t max_bytes = wire.BytesThatFit(memory.part_bytes());

  PhaseTimer timer(resources.clock, hooks);
  std::vector<size_t> parts;       // bytes in the tensors
  std::vector<size_t> wire_parts;  // bytes in the buffer
  absl::Span<std::byte> chunk;
  return RunRounds(
      NumRounds(LongestStream(all), max_bytes), timer,
      [&] {
        parts = NextParts(all, max_bytes);
        wire_parts.clear();
        for (const size_t bytes : parts) {
          wire_parts.push_back(wire.WireBytes(bytes));
        }
        chunk = VisitParts(
            memory.bytes(), wire_parts,
            [&](size_t rank, absl::Span<std::byte> part) {
              all[rank].Advance(
                  parts[rank],
                  [&](absl::Span<const std::byte> from, size_t begin) {
                    wire.Pack(from, part.subspan(wire.WireBytes(begin),
                                                 wire.WireBytes(from.size())));
                  });
            });
      },
      [&] {
        return resources.communicator.ReduceScatter(chunk, wire_parts,
                                                    wire.type(), reduction.op);
      },
      [&] {
        mine.Advance(parts[me], [&](absl::Span<std::byte> to, size_t begin) {
          wire.Unpack(
              chunk.subspan(wire.WireBytes(begin), wire.WireBytes(to.size())),
              to);
        });
      });
}

absl::Status FusedAlltoall(const FusionResources& resources,
                           absl::Span<const PartitionedTensor> tensors,
                           const FusionHooks& hooks) {
  Communicator& communicator = resources.communicator;
  HVDLITE_RETURN_IF_ERROR(CheckBothPartitions(tensors, communicator));
  if (tensors.empty()) return absl::OkStatus();
  const size_t me = communicator.rank();

  // The part of this rank needs no communication.
  auto given =
      StreamsOfRanks(tensors, &PartitionedTensor::input,
                     &PartitionedTensor::input_bytes, communicator.size());
  auto taken =
      StreamsOfRanks(tensors, &PartitionedTensor::output,
                     &PartitionedTensor::output_bytes, communicator.size());
  given[me].Advance(given[me].bytes_left(),
                    [&](absl::Span<const std::byte> piece, size_t) {
                      taken[me].Write(piece);
                    });
  if (communicator.size() == 1) return absl::OkStatus();

  // The first half is sent, the second half receives.
  const PartMemory memory(resources.buffer, 2 * communicator.size());
  const size_t half = memory.bytes().size() / 2;

  PhaseTimer timer(resources.clock, hooks);
  // The longest stream of all ranks counts; a rank knows only its own.
  int64_t num_rounds = NumRounds(LongestStream(given), memory.part_bytes());
  HVDLITE_RETURN_IF_ERROR(communicator.Allreduce(
      {reinterpret_cast<std::byte*>(&num_rounds), sizeof(num_rounds)},
      DataType::kInt64, ReduceOp::kMax));
  timer.PhaseOver(FusionPhase::kCommunicate, 0);

  std::vector<size_t> given_parts;
  std::vector<size_t> taken_parts;
  absl::Span<std::byte> sent;
  absl::Span<std::byte> received;
  return RunRounds(
      num_rounds, timer,
      [&] {
        given_parts = NextParts(given, memory.part_bytes());
        taken_parts = NextParts(taken, memory.part_bytes());
        sent = VisitParts(memory.bytes().first(half), given_parts,
                          [&](size_t rank, absl::Span<std::byte> part) {
                            given[rank].Read(part);
                          });
        received = VisitParts(memory.bytes().subspan(half), taken_parts,
                              [](size_t, absl::Span<std::byte>) {});
      },
      [&] {
        return communicator.Alltoall(sent, given_parts, received, taken_parts);
      },
      [&] {
        VisitParts(received, taken_parts,
                   [&](size_t rank, absl::Span<const std::byte> part) {
                     taken[rank].Write(part);
                   });
      });
}

}  // namespace hvdlite::collective
