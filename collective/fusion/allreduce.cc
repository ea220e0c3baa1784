#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "collective/communicator.h"
#include "collective/fusion/fusion.h"
#include "collective/fusion/rounds.h"
#include "collective/fusion/tensor_stream.h"
#include "collective/fusion/wire.h"

namespace hvdlite::collective {

absl::Status FusedAllreduce(const FusionResources& resources,
                            const Reduction& reduction,
                            absl::Span<const FusedTensor> tensors,
                            const FusionHooks& hooks) {
  HVDLITE_RETURN_IF_ERROR(CheckReduction(reduction));
  HVDLITE_RETURN_IF_ERROR(CheckTensors(tensors, SizeOf(reduction.dtype),
                                       /*input_optional=*/true));
  if (resources.communicator.size() == 1) {
    const Wire wire(reduction, /*num_inputs=*/1);
    for (const FusedTensor& tensor : tensors) {
      wire.PackAndUnpack(tensor.input, tensor.output);
    }
    return absl::OkStatus();
  }

  PhaseTimer timer(resources.clock, hooks);
  return resources.communicator.AllreduceTensors(resources.buffer.bytes(),
                                                 reduction, tensors, timer);
}

absl::Status Communicator::AllreduceTensors(
    absl::Span<std::byte> buffer, const Reduction& reduction,
    absl::Span<const FusedTensor> tensors, PhaseTimer& timer) {
  return ReduceByChunks(*this, buffer, reduction, tensors, timer);
}

absl::StatusOr<TensorMemory> Communicator::AllocateTensors(size_t bytes) {
  try {
    auto buffer = std::make_shared<FusionBuffer>(bytes);
    const absl::Span<std::byte> memory = buffer->bytes();
    std::memset(memory.data(), 0, memory.size());
    return TensorMemory{memory, std::move(buffer)};
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("no memory for tensors");
  }
}

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
