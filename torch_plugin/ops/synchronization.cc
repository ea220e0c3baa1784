// barrier() and join(): operations without tensors.
#include <hvdlite/ops.h>

#include "torch_plugin/ops/operation_call.h"

namespace hvdlite {

void barrier(const ProcessSet& process_set) {
  internal::OperationCall call("barrier", /*name=*/"", process_set);
  call.request().collective = negotiation::Collective::kBarrier;
  call.Run();
}

int join() {
  const std::shared_ptr<internal::World> world = internal::CurrentWorld();
  internal::OperationCall call("join", /*name=*/"", ProcessSet());
  call.request().collective = negotiation::Collective::kJoin;
  const auto operation = call.Run();
  world->CountJoin();
  return static_cast<int>(operation->value());
}

}  // namespace hvdlite
