#include <hvdlite/broadcast_state.h>
#include <hvdlite/distributed_optimizer.h>
#include <hvdlite/errors.h>
#include <hvdlite/ops.h>
#include <hvdlite/world.h>

#include <exception>
#include <utility>
#include <vector>

namespace hvdlite {
namespace {

// Operation's name and tensor, in an order that is the same on all ranks.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

void Append(NamedTensors& tensors, const std::string& prefix,
            const torch::OrderedDict<std::string, at::Tensor>& more) {
  for (const auto& item : more) {
    if (item.value().defined()) {
      tensors.emplace_back(prefix + item.key(), item.value());
    }
  }
}

// Submits all, whatever becomes of each, then waits for all, so that they
// travel together. Nothing is in flight when it throws.
void BroadcastAll(const NamedTensors& tensors, int root_rank,
                  const ProcessSet& process_set) {
  std::vector<Work> works;
  std::exception_ptr first_error;
  for (const auto& [name, tensor] : tensors) {
    try {
      works.push_back(broadcast_async_(
          tensor, root_rank,
          BroadcastOptions().name(name).process_set(process_set)));
    } catch (...) {
      if (first_error == nullptr) first_error = std::current_exception();
    }
  }
  // The last one first: it marks the others as awaited, too.
  std::exception_ptr first_failure;
  for (size_t i = works.size(); i-- > 0;) {
    try {
      works[i].wait();
    } catch (...) {
      first_failure = std::current_exception();
    }
  }
  if (first_error == nullptr) first_error = first_failure;
  if (first_error != nullptr) std::rethrow_exception(first_error);
}

}  // namespace

void broadcast_parameters(const torch::nn::Module& module, int root_rank,
                          const ProcessSet& process_set) {
  NamedTensors tensors;
  Append(tensors, "broadcast_parameters.", module.named_parameters());
  Append(tensors, "broadcast_parameters.buffer.", module.named_buffers());
  BroadcastAll(tensors, root_rank, process_set);
}

void broadcast_parameters(
    const torch::OrderedDict<std::string, at::Tensor>& tensors, int root_rank,
    const ProcessSet& process_set) {
  NamedTensors named;
  Append(named, "broadcast_parameters.", tensors);
  BroadcastAll(named, root_rank, process_set);
}

}  // namespace hvdlite
