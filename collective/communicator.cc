#include "collective/communicator.h"

#include <cstring>
#include <new>

#include "collective/fusion/fusion_buffer.h"

namespace hvdlite::collective {

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

}  // namespace hvdlite::collective
