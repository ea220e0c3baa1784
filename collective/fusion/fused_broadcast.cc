#include "collective/fusion/fused_broadcast.h"

#include <algorithm>
#include <cstring>

#include "base/status_macros.h"
#include "collective/fusion/fused_checks.h"
#include "collective/fusion/fused_rounds.h"
#include "collective/fusion/fused_stream.h"

namespace hvdlite::collective {

absl::Status FusedBroadcast(const FusionResources& resources, int root,
                            absl::Span<const FusedTensor> tensors,
                            const FusionHooks& hooks) {
  const bool is_root = resources.communicator.rank() == root;
  if (is_root) {
    HVDLITE_RETURN_IF_ERROR(CheckTensors(tensors, /*element_bytes=*/1,
                                         /*input_optional=*/false));
    for (const FusedTensor& tensor : tensors) {
      if (tensor.output.empty()) continue;
      if (tensor.input.data() == tensor.output.data()) continue;
      std::memcpy(tensor.output.data(), tensor.input.data(),
                  tensor.output.size());
    }
  }
  if (resources.communicator.size() == 1 && is_root) return absl::OkStatus();

  MemoryStream<std::byte> stream;
  for (const FusedTensor& tensor : tensors) stream.Append(tensor.output);
  const absl::Span<std::byte> buffer = resources.buffer.bytes();
  const int64_t num_rounds = NumRounds(stream.bytes_left(), buffer.size());

  PhaseTimer timer(resources.clock, hooks);
  absl::Span<std::byte> chunk;
  return RunRounds(
      num_rounds, timer,
      [&] {
        chunk = buffer.first(std::min(buffer.size(), stream.bytes_left()));
        if (is_root) stream.Read(chunk);
      },
      [&] { return resources.communicator.Broadcast(chunk, root); },
      [&] {
        if (!is_root) stream.Write(chunk);
      });
}

}  // namespace hvdlite::collective
