#include "collective/fused_allreduce.h"

#include <algorithm>

#include "base/status_macros.h"
#include "collective/fused_checks.h"
#include "collective/fused_rounds.h"
#include "collective/fused_stream.h"
#include "collective/fused_wire.h"

namespace hvdlite::collective {

absl::Status FusedAllreduce(const FusionResources& resources,
                            const Reduction& reduction,
                            absl::Span<const FusedTensor> tensors,
                            const FusionHooks& hooks) {
  HVDLITE_RETURN_IF_ERROR(CheckDataType(reduction.dtype));
  HVDLITE_RETURN_IF_ERROR(CheckTensors(tensors, SizeOf(reduction.dtype),
                                       /*input_optional=*/true));
  const Wire wire(reduction);
  if (resources.communicator.size() == 1) {
    for (const FusedTensor& tensor : tensors) {
      wire.PackAndUnpack(tensor.input, tensor.output);
    }
    return absl::OkStatus();
  }

  size_t bytes_left = 0;
  for (const FusedTensor& tensor : tensors) bytes_left += tensor.output.size();
  const absl::Span<std::byte> buffer = resources.buffer.bytes();
  const size_t chunk_bytes = wire.BytesThatFit(buffer.size());
  const auto size_of = [&](size_t i) { return tensors[i].output.size(); };
  const auto chunk_part = [&](size_t begin, size_t bytes) {
    return buffer.subspan(wire.WireBytes(begin), wire.WireBytes(bytes));
  };

  PhaseTimer timer(resources, hooks);
  StreamPosition at;
  size_t bytes = 0;  // of the tensors, in this chunk
  return RunRounds(
      NumRounds(bytes_left, chunk_bytes), timer,
      [&] {
        bytes = std::min(chunk_bytes, bytes_left);
        bytes_left -= bytes;
        VisitStream(at, bytes, size_of,
                    [&](size_t i, size_t offset, size_t begin, size_t count) {
                      const absl::Span<std::byte> to = chunk_part(begin, count);
                      if (tensors[i].input.empty()) {
                        wire.PackNeutral(to);
                      } else {
                        wire.Pack(tensors[i].input.subspan(offset, count), to);
                      }
                    });
      },
      [&] {
        return resources.communicator.Allreduce(chunk_part(0, bytes),
                                                wire.type(), reduction.op);
      },
      [&] {
        at = VisitStream(
            at, bytes, size_of,
            [&](size_t i, size_t offset, size_t begin, size_t count) {
              wire.Unpack(chunk_part(begin, count),
                          tensors[i].output.subspan(offset, count));
            });
      });
}

}  // namespace hvdlite::collective
