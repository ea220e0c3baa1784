#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collective/fusion/fused_checks.h"
#include "collective/fusion/fused_partitions.h"
#include "collective/fusion/fused_parts.h"
#include "collective/fusion/fused_rounds.h"
#include "collective/fusion/fused_stream.h"

namespace hvdlite::collective {
namespace {

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
          absl::StrCat("tensor ", i, " of the batch: rank ", me,
                       " gives itself ", tensor.input_bytes[me],
                       " bytes, but expects ", tensor.output_bytes[me]));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FusedAlltoall(const FusionResources& resources,
                           absl::Span<const PartitionedTensor> tensors,
                           const FusionHooks& hooks) {
  Communicator& communicator = resources.communicator;
  HVDLITE_RETURN_IF_ERROR(CheckBothPartitions(tensors, communicator));
  if (tensors.empty()) return absl::OkStatus();
  const size_t me = communicator.rank();

  // What stays here needs no communication.
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

  // One half is sent from, the other received into.
  const PartMemory memory(resources.buffer, 2 * communicator.size());
  const size_t half = memory.bytes().size() / 2;

  PhaseTimer timer(resources.clock, hooks);
  // The longest of all streams counts; a rank knows its own only.
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
