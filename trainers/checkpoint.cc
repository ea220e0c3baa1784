#include "trainers/checkpoint.h"

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

void WriteState(torch::serialize::OutputArchive& archive,
                const std::string& model_name, const torch::nn::Module& model,
                const torch::optim::Optimizer& optimizer,
                const Progress& progress) {
  archive.write("model_name", c10::IValue(model_name));
  archive.write("epoch", c10::IValue(progress.epoch));
  archive.write("step", c10::IValue(progress.step));
  archive.write("steps_per_epoch", c10::IValue(progress.steps_per_epoch));
  torch::serialize::OutputArchive model_archive(archive.compilation_unit());
  model.save(model_archive);
  archive.write("model", model_archive);
  torch::serialize::OutputArchive optimizer_archive(archive.compilation_unit());
  optimizer.save(optimizer_archive);
  archive.write("optimizer", optimizer_archive);
}

Progress ReadState(torch::serialize::InputArchive& archive,
                   const std::string& model_name, torch::nn::Module& model,
                   torch::optim::Optimizer& optimizer) {
  c10::IValue saved_name;
  archive.read("model_name", saved_name);
  if (saved_name.toStringRef() != model_name) {
    throw std::runtime_error("it holds " + saved_name.toStringRef() +
                             ", but this training is of " + model_name);
  }
  torch::serialize::InputArchive model_archive;
  archive.read("model", model_archive);
  model.load(model_archive);
  torch::serialize::InputArchive optimizer_archive;
  archive.read("optimizer", optimizer_archive);
  optimizer.load(optimizer_archive);
  return {ReadInteger(archive, "epoch"), ReadInteger(archive, "step"),
          ReadInteger(archive, "steps_per_epoch")};
}

}  // namespace hvdlite::trainers
