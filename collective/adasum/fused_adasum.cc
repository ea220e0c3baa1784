#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collective/adasum/adasum_reduction.h"
#include "collective/fusion/fused_allreduce.h"
#include "collective/fusion/fused_checks.h"
#include "collective/fusion/fused_rounds.h"
#include "collective/fusion/fused_wire.h"
#include "collective/fusion/fusion_buffer.h"

namespace hvdlite::collective {
namespace {

absl::Status CheckFloatType(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat32:
    case DataType::kFloat64:
    case DataType::kFloat16:
    case DataType::kBFloat16:
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("Adasum needs tensors of floating-point numbers, not ",
                       NameOf(dtype), "; use another reduction for them"));
  }
}

}  // namespace

absl::Status FusedAdasum(const FusionResources& resources,
                         const Reduction& reduction,
                         absl::Span<const FusedTensor> tensors,
                         const FusionHooks& hooks) {
  HVDLITE_RETURN_IF_ERROR(CheckFloatType(reduction.dtype));
  HVDLITE_RETURN_IF_ERROR(CheckTensors(tensors, SizeOf(reduction.dtype),
                                       /*input_optional=*/true));
  Reduction sum = reduction;
  sum.op = ReduceOp::kSum;  // its neutral elements are zeros
  const Wire wire(sum, resources.communicator.size());
  if (resources.communicator.size() == 1) {
    for (const FusedTensor& tensor : tensors) {
      wire.PackAndUnpack(tensor.input, tensor.output);
    }
    return absl::OkStatus();
  }

  std::vector<size_t> ends;  // in the vector
  for (const FusedTensor& tensor : tensors) {
    ends.push_back((ends.empty() ? 0 : ends.back()) +
                   wire.WireBytes(tensor.output.size()));
  }
  if (ends.empty() || ends.back() == 0) return absl::OkStatus();

  PhaseTimer timer(resources.clock, hooks);
  const FusionBuffer memory(ends.back());
  const absl::Span<std::byte> vector = memory.bytes().first(ends.back());
  const auto part_of = [&](size_t i) {
    const size_t begin = i == 0 ? 0 : ends[i - 1];
    return vector.subspan(begin, ends[i] - begin);
  };
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].input.empty()) {
      wire.PackNeutral(part_of(i));
    } else {
      wire.Pack(tensors[i].input, part_of(i));
    }
  }
  int64_t chunk = 0;
  timer.PhaseOver(FusionPhase::kPack, chunk);

  const auto next_chunk = [&] {
    timer.PhaseOver(FusionPhase::kCommunicate, chunk++);
    return timer.Pause();
  };
  HVDLITE_RETURN_IF_ERROR(
      AdasumReduction(resources.communicator, wire.type(), vector, ends,
                      resources.buffer.bytes().size(), next_chunk)
          .Run());
  timer.PhaseOver(FusionPhase::kCommunicate, chunk);

  for (size_t i = 0; i < tensors.size(); ++i) {
    wire.Unpack(part_of(i), tensors[i].output);
  }
  timer.PhaseOver(FusionPhase::kUnpack, chunk);
  return absl::OkStatus();
}

}  // namespace hvdlite::collective
