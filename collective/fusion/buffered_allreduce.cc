#include "collective/fusion/buffered_allreduce.h"

#include <algorithm>

#include "collective/fusion/fused_stream.h"
#include "collective/fusion/fused_wire.h"

namespace hvdlite::collective {

absl::Status BufferedAllreduce(Communicator& communicator,
                               absl::Span<std::byte> buffer,
                               const Reduction& reduction,
                               absl::Span<const FusedTensor> tensors,
                               PhaseTimer& timer) {
  const Wire wire(reduction, communicator.size());
  size_t bytes_left = 0;
  for (const FusedTensor& tensor : tensors) bytes_left += tensor.output.size();
  const size_t chunk_bytes = wire.BytesThatFit(buffer.size());
  const auto size_of = [&](size_t i) { return tensors[i].output.size(); };
  const auto chunk_part = [&](size_t begin, size_t bytes) {
    return buffer.subspan(wire.WireBytes(begin), wire.WireBytes(bytes));
  };

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
        return communicator.Allreduce(chunk_part(0, bytes), wire.type(),
                                      reduction.op);
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
