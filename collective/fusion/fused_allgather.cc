#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/status_macros.h"
#include "collective/fusion/fused_checks.h"
#include "collective/fusion/fused_partitions.h"
#include "collective/fusion/fused_parts.h"
#include "collective/fusion/fused_rounds.h"
#include "collective/fusion/fused_stream.h"

namespace hvdlite::collective {

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

}  // namespace hvdlite::collective
