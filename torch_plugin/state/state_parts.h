// StateParts: the parts of an elastic::State, in an archive.
#pragma once

#include <ATen/core/ivalue.h>
#include <hvdlite/sampler.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>

#include <functional>
#include <string>
#include <vector>

namespace hvdlite::elastic {

struct StateParts {
  struct Value {
    std::string name;
    std::function<c10::IValue()> get;
    std::function<void(const c10::IValue&)> set;
  };

  std::vector<torch::nn::Module*> models;
  std::vector<torch::optim::Optimizer*> optimizers;
  std::vector<DistributedSampler*> samplers;
  std::vector<Value> values;

  // Writes all parts, as those of a training called `name`.
  void Write(torch::serialize::OutputArchive& archive,
             const std::string& name) const;
  // Reads what Write() wrote; the optimizers' options only if `with_options`.
  // Returns false if the archive was not made by Write(). Throws with the first
  // part that differs, and changes nothing, if it belongs to another training.
  bool Read(torch::serialize::InputArchive& archive, const std::string& name,
            bool with_options) const;

  // The same for samplers and values only.
  void WriteRest(torch::serialize::OutputArchive& archive) const;
  void ReadRest(torch::serialize::InputArchive& archive) const;

 private:
  // Returns a line for each part that must be the same in a commit.
  std::vector<std::string> Describe(const std::string& name) const;
};

}  // namespace hvdlite::elastic
