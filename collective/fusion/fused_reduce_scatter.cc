#include <cstddef>
#include <vector>

#include "base/status_macros.h"
#include "collective/fusion/fused_checks.h"
#include "collective/fusion/fused_partitions.h"
#include "collective/fusion/fused_parts.h"
#include "collective/fusion/fused_rounds.h"
#include "collective/fusion/fused_stream.h"
#include "collective/fusion/fused_wire.h"

namespace hvdlite::collective {

absl::Status FusedReduceScatter(const FusionResources& resources,
                                const Reduction& reduction,
                                absl::Span<const PartitionedTensor> tensors,
                                const FusionHooks& hooks) {
  HVDLITE_RETURN_IF_ERROR(CheckDataType(reduction.dtype));
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
  std::vector<size_t> parts;       // of the tensors
  std::vector<size_t> wire_parts;  // of the buffer
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

}  // namespace hvdlite::collective
