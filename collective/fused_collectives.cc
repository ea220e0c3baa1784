#include "collective/fused_collectives.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collective/reduction_kernels.h"

namespace hvdlite::collective {
namespace {

// A place in the bytes of all tensors, one after the other.
struct StreamPosition {
  size_t tensor = 0;
  size_t offset = 0;
};

// Calls visit(tensor, offset in it, piece of `chunk`) for every tensor that has
// bytes among the next chunk.size() bytes from `start`. Returns the position
// after them.
template <typename Visit>
StreamPosition VisitPieces(absl::Span<const FusedTensor> tensors,
                           StreamPosition start, absl::Span<std::byte> chunk,
                           const Visit& visit) {
  StreamPosition at = start;
  size_t done = 0;
  while (done < chunk.size()) {
    const FusedTensor& tensor = tensors[at.tensor];
    const size_t bytes =
        std::min(tensor.output.size() - at.offset, chunk.size() - done);
    if (bytes > 0) visit(tensor, at.offset, chunk.subspan(done, bytes));
    done += bytes;
    at.offset += bytes;
    if (at.offset == tensor.output.size()) at = {at.tensor + 1, 0};
  }
  return at;
}

// Packs, communicates and unpacks chunk by chunk. A chunk is the fusion buffer,
// whose size is a multiple of 64, so that no element is split.
template <typename Pack, typename Communicate, typename Unpack>
absl::Status RunChunks(const FusionResources& resources,
                       absl::Span<const FusedTensor> tensors,
                       const FusionHooks& hooks, const Pack& pack,
                       const Communicate& communicate, const Unpack& unpack) {
  size_t remaining = 0;
  for (const FusedTensor& tensor : tensors) remaining += tensor.output.size();

  int64_t phase_start_ns = hooks.on_phase ? resources.clock.NowNanos() : 0;
  int64_t chunk_index = 0;
  const auto phase_over = [&](FusionPhase phase) {
    if (!hooks.on_phase) return;
    const int64_t now_ns = resources.clock.NowNanos();
    hooks.on_phase(phase, chunk_index, phase_start_ns, now_ns);
    phase_start_ns = now_ns;
  };

  StreamPosition position;
  for (; remaining > 0; ++chunk_index) {
    const absl::Span<std::byte> buffer = resources.buffer.bytes();
    const absl::Span<std::byte> chunk =
        buffer.first(std::min(buffer.size(), remaining));
    VisitPieces(tensors, position, chunk, pack);
    phase_over(FusionPhase::kPack);
    HVDLITE_RETURN_IF_ERROR(communicate(chunk));
    phase_over(FusionPhase::kCommunicate);
    position = VisitPieces(tensors, position, chunk, unpack);
    phase_over(FusionPhase::kUnpack);
    remaining -= chunk.size();
    if (remaining > 0 && hooks.between_chunks) {
      HVDLITE_RETURN_IF_ERROR(hooks.between_chunks());
      if (hooks.on_phase) phase_start_ns = resources.clock.NowNanos();
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTensors(absl::Span<const FusedTensor> tensors,
                          size_t element_bytes, bool input_optional) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const size_t input_bytes = tensors[i].input.size();
    const size_t output_bytes = tensors[i].output.size();
    if (output_bytes % element_bytes != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", i, " of the batch has ", output_bytes,
                       " bytes, not a whole number of elements of ",
                       element_bytes, " bytes"));
    }
    if (input_bytes != output_bytes && !(input_optional && input_bytes == 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", i, " of the batch has ", input_bytes,
                       " bytes of input, but ", output_bytes, " of output"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FusedAllreduce(const FusionResources& resources, DataType dtype,
                            ReduceOp op, double prescale, double postscale,
                            absl::Span<const FusedTensor> tensors,
                            const FusionHooks& hooks) {
  HVDLITE_RETURN_IF_ERROR(
      CheckTensors(tensors, SizeOf(dtype), /*input_optional=*/true));
  const auto contribute = [&](const FusedTensor& tensor, size_t offset,
                              absl::Span<std::byte> to) {
    if (tensor.input.empty()) {
      FillNeutral(op, dtype, to);
    } else {
      CopyScaled(dtype, prescale, tensor.input.subspan(offset, to.size()), to);
    }
  };
  if (resources.communicator.size() == 1) {
    for (const FusedTensor& tensor : tensors) {
      contribute(tensor, 0, tensor.output);
      CopyScaled(dtype, postscale, tensor.output, tensor.output);
    }
    return absl::OkStatus();
  }
  return RunChunks(
      resources, tensors, hooks, contribute,
      [&](absl::Span<std::byte> chunk) {
        return resources.communicator.Allreduce(chunk, dtype, op);
      },
      [&](const FusedTensor& tensor, size_t offset,
          absl::Span<std::byte> from) {
        CopyScaled(dtype, postscale, from,
                   tensor.output.subspan(offset, from.size()));
      });
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
  return RunChunks(
      resources, tensors, hooks,
      [&](const FusedTensor& tensor, size_t offset, absl::Span<std::byte> to) {
        if (is_root) {
          std::memcpy(to.data(), tensor.output.data() + offset, to.size());
        }
      },
      [&](absl::Span<std::byte> chunk) {
        return resources.communicator.Broadcast(chunk, root);
      },
      [&](const FusedTensor& tensor, size_t offset,
          absl::Span<std::byte> from) {
        if (!is_root) {
          std::memcpy(tensor.output.data() + offset, from.data(), from.size());
        }
      });
}

}  // namespace hvdlite::collective
