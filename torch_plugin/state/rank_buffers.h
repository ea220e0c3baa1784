// RankBuffers: the buffers of models of which each rank has its own values, such
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
  // None.
  RankBuffers() = default;

  // All ranks' values of those buffers that are not the same everywhere; on
  // rank 0, or on every one if `everywhere`. Costs no communication if there are
  // no buffers, and a small one if all are the same. `name` is of its
  // operations. Collective.
  static RankBuffers Gather(const std::vector<torch::nn::Module*>& models,
                            const std::string& name, bool everywhere);

  // In an archive; reading gives none where there is nothing of the kind.
  void Write(torch::serialize::OutputArchive& archive) const;
  static RankBuffers Read(torch::serialize::InputArchive& archive);

  // Gives the models, which are those they were gathered from, this rank's
  // values. Nothing if they are of another number of ranks.
  void Restore(const std::vector<torch::nn::Module*>& models) const;

 private:
  std::vector<int64_t> places_;  // among all buffers
  at::Tensor bytes_;             // [ranks, bytes]
};

}  // namespace hvdlite::elastic
