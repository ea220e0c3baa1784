// SyncBatchNorm: batch normalisation over the batches of all ranks.
#pragma once

#include <ATen/core/Tensor.h>
#include <hvdlite/process_set.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/options/batchnorm.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>

namespace hvdlite {

namespace internal {
class World;
}  // namespace internal

// Normalises inputs [N, C, ...] (float32, float64, float16 or bfloat16; C =
// options.num_features(); N may differ by rank, also be 0) with the mean and
// the variance per channel over the batches of all ranks of the process set, as
// if they were one batch; so do its gradients with respect to the input.
// Gradients of weight and bias are this rank's share, as those of any other
// parameter: DistributedOptimizer reduces them. Parameters, buffers and their
// names are those of torch::nn::BatchNorm, so that archives fit both ways.
//
// In training forward() is collective, and backward() too; evaluation with
// running statistics is not. Statistics are computed in float32 (float64 for
// float64). Throws c10::Error for inputs of other shapes, and when training
// with a single value per channel over all ranks; in training then on all
// ranks, with the same text, whichever rank's input it is. Modules are told
// apart by the order in which they are first used in training, the same on all
// ranks.
class SyncBatchNormImpl : public torch::nn::Cloneable<SyncBatchNormImpl> {
 public:
  explicit SyncBatchNormImpl(int64_t num_features);
  explicit SyncBatchNormImpl(const torch::nn::BatchNormOptions& options,
                             ProcessSet process_set = {});

  at::Tensor forward(const at::Tensor& input);

  void reset() override;
  void reset_running_stats();
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  torch::nn::BatchNormOptions options;
  at::Tensor weight;               // undefined unless options.affine()
  at::Tensor bias;                 // as weight
  at::Tensor running_mean;         // undefined unless track_running_stats()
  at::Tensor running_var;          // unbiased, as running_mean
  at::Tensor num_batches_tracked;  // as running_mean

 private:
  // Of the module's exchanges, the same in every step; a copy of the module
  // gets another one.
  class Name {
   public:
    Name() = default;
    Name(const Name&) {}
    Name& operator=(const Name&) { return *this; }

    // Taken when it is first asked for in a world, and once all ranks have
    // joined.
    const std::string& In(const std::shared_ptr<internal::World>& world,
                          const ProcessSet& process_set);

   private:
    std::weak_ptr<internal::World> world_;
    int64_t joins_ = 0;
    std::string name_;
  };

  ProcessSet process_set_;
  Name name_;
};

TORCH_MODULE(SyncBatchNorm);

}  // namespace hvdlite
