#include "collective/fusion/fused_allreduce.h"

#include "base/status_macros.h"
#include "collective/fusion/buffered_allreduce.h"
#include "collective/fusion/fused_checks.h"
#include "collective/fusion/fused_rounds.h"
#include "collective/fusion/fused_wire.h"
#include "collective/fusion/stream_reducer.h"

namespace hvdlite::collective {

absl::Status FusedAllreduce(const FusionResources& resources,
                            const Reduction& reduction,
                            absl::Span<const FusedTensor> tensors,
                            const FusionHooks& hooks) {
  HVDLITE_RETURN_IF_ERROR(CheckDataType(reduction.dtype));
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
  if (StreamReducer* const reducer = resources.communicator.stream_reducer()) {
    return reducer->ReduceStream(reduction, tensors, timer);
  }
  return BufferedAllreduce(resources.communicator, resources.buffer.bytes(),
                           reduction, tensors, timer);
}

}  // namespace hvdlite::collective
