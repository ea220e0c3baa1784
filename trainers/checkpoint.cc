#include "trainers/checkpoint.h"

#include <hvdlite/checkpoint.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/archive.h>

#include <stdexcept>

namespace hvdlite::trainers {
namespace {

int64_t ReadInteger(torch::serialize::InputArchive& archive,
                    const std::string& key) {
  c10::IValue value;
  archive.read(key, value);
  return value.toInt();
}

}  // namespace

int64_t ReadFirstRelease(torch::serialize::InputArchive& archive,
                         const std::string& model_name,
                         int64_t samples_per_step, torch::nn::Module& model,
                         torch::optim::Optimizer& optimizer,
                         DistributedSampler& sampler) {
  c10::IValue saved_name;
  archive.read("model_name", saved_name);
  if (saved_name.toStringRef() != model_name) {
    throw std::runtime_error("it holds " + saved_name.toStringRef() +
                             ", but this training has " + model_name);
  }
  const int64_t epoch = ReadInteger(archive, "epoch");
  const int64_t step = ReadInteger(archive, "step");
  const int64_t steps_per_epoch = ReadInteger(archive, "steps_per_epoch");
  // Samples beyond the last whole step of an epoch were not used.
  const int64_t own_steps = sampler.dataset_size() / samples_per_step;
  if (step > 0 && steps_per_epoch != own_steps) {
    throw std::runtime_error(
        "it was made at step " + std::to_string(step) + " of an epoch of " +
        std::to_string(steps_per_epoch) + " steps, but an epoch has " +
        std::to_string(own_steps) +
        " steps here; use the same number of ranks, batch size and data");
  }
  read_state(archive, "model", model);
  read_state(archive, "optimizer", optimizer, /*with_options=*/false);
  sampler.resume(epoch, step * samples_per_step);
  return epoch * steps_per_epoch + step;
}

}  // namespace hvdlite::trainers
