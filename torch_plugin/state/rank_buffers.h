// RankBuffers: the buffers of models that have other values on each rank, such
// as batch normalisation's running statistics.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>

#include <cstdint>
#include <string>
#include <vector>

namespace hvdlite::elastic {

class RankBuffers {
 public:
  // Has no buffers.
  RankBuffers() = default;

  // Collects the values of all ranks for those buffers that differ between
  // ranks; on rank 0, or on every rank if `everywhere`. Without buffers there
  // is no communication; if all are equal there is little. `name` is the prefix
  // of its operations' names. Collective.
  static RankBuffers Gather(const std::vector<torch::nn::Module*>& models,
                            const std::string& name, bool everywhere);

  // Write to and read from an archive. Read() returns no buffers if the archive
  // has none.
  void Write(torch::serialize::OutputArchive& archive) const;
  static RankBuffers Read(torch::serialize::InputArchive& archive);

  // Copies this rank's values to the models, which must be those that they were
  // gathered from. Does nothing if the number of ranks is another one.
  void Restore(const std::vector<torch::nn::Module*>& models) const;

 private:
  std::vector<int64_t> places_;  // indices among all buffers
  at::Tensor bytes_;             // [ranks, bytes]
};

}  // namespace hvdlite::elastic
