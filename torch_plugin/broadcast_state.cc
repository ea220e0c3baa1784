#include <hvdlite/broadcast_state.h>
#include <hvdlite/distributed_optimizer.h>
#include <hvdlite/errors.h>
#include <hvdlite/ops.h>
#include <hvdlite/world.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>

#include <exception>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "torch_plugin/tensor_checks.h"
#include "torch_plugin/throw_status.h"
#include "torch_plugin/world_state.h"

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

// Submits all, then waits for all, so that they travel together. Nothing is in
// flight when it throws.
void BroadcastAll(const NamedTensors& tensors, int root_rank) {
  for (const auto& [name, tensor] : tensors) {
    internal::CheckTensor(tensor, absl::StrCat("broadcast '", name, "'"));
  }
  std::vector<Work> works;
  std::exception_ptr first_error;
  try {
    for (const auto& [name, tensor] : tensors) {
      works.push_back(
          broadcast_async_(tensor, root_rank, BroadcastOptions().name(name)));
    }
  } catch (...) {
    first_error = std::current_exception();
  }
  // The last one first: it marks the others as awaited, too.
  for (size_t i = works.size(); i-- > 0;) {
    try {
      works[i].wait();
    } catch (...) {
      first_error = std::current_exception();
    }
  }
  if (first_error != nullptr) std::rethrow_exception(first_error);
}

std::string Bytes(torch::serialize::OutputArchive& archive) {
  std::ostringstream stream;
  archive.save_to(stream);
  return std::move(stream).str();
}

torch::serialize::InputArchive ArchiveOf(const std::string& bytes) {
  std::istringstream stream(bytes);
  torch::serialize::InputArchive archive;
  archive.load_from(stream);
  return archive;
}

std::string GroupKey(size_t group) { return absl::StrCat("group", group); }

std::string SerializedState(const torch::optim::Optimizer& optimizer) {
  torch::serialize::OutputArchive archive;
  optimizer.save(archive);
  return Bytes(archive);
}

// LibTorch's own archive of an optimizer has the options, but loading it does
// not set them; hence one more.
std::string SerializedOptions(const torch::optim::Optimizer& optimizer) {
  torch::serialize::OutputArchive archive;
  for (size_t i = 0; i < optimizer.param_groups().size(); ++i) {
    torch::serialize::OutputArchive group(archive.compilation_unit());
    optimizer.param_groups()[i].options().serialize(group);
    archive.write(GroupKey(i), group);
  }
  return Bytes(archive);
}

void LoadState(torch::optim::Optimizer& optimizer, const std::string& bytes) {
  // Loading adds; what the root does not have must go.
  optimizer.state().clear();
  torch::serialize::InputArchive archive = ArchiveOf(bytes);
  optimizer.load(archive);
}

void LoadOptions(torch::optim::Optimizer& optimizer, const std::string& bytes) {
  torch::serialize::InputArchive archive = ArchiveOf(bytes);
  for (size_t i = 0; i < optimizer.param_groups().size(); ++i) {
    torch::serialize::InputArchive group;
    archive.read(GroupKey(i), group);
    optimizer.param_groups()[i].options().serialize(group);
  }
}

}  // namespace

void broadcast_parameters(const torch::nn::Module& module, int root_rank) {
  NamedTensors tensors;
  Append(tensors, "broadcast_parameters.", module.named_parameters());
  Append(tensors, "broadcast_parameters.buffer.", module.named_buffers());
  BroadcastAll(tensors, root_rank);
}

void broadcast_parameters(
    const torch::OrderedDict<std::string, at::Tensor>& tensors, int root_rank) {
  NamedTensors named;
  Append(named, "broadcast_parameters.", tensors);
  BroadcastAll(named, root_rank);
}

void broadcast_optimizer_state(torch::optim::Optimizer& optimizer,
                               int root_rank) {
  const bool is_root = rank() == root_rank;
  const std::string state = broadcast_object(
      is_root ? SerializedState(optimizer) : std::string(), root_rank);
  const std::string options = broadcast_object(
      is_root ? SerializedOptions(optimizer) : std::string(), root_rank);
  if (is_root) return;
  try {
    LoadState(optimizer, state);
    LoadOptions(optimizer, options);
  } catch (const std::exception& error) {
    internal::ThrowError(absl::StrCat(
        "broadcast_optimizer_state: rank ", rank(),
        " cannot load the optimizer of rank ", root_rank,
        ": optimizers of all ranks need the same type and the same parameter "
        "groups. ",
        error.what()));
  }
}

void broadcast_optimizer_state(DistributedOptimizer& optimizer, int root_rank) {
  broadcast_optimizer_state(optimizer.inner(), root_rank);
}

}  // namespace hvdlite
