// SyncBatchNorm: batch normalisation over the mini-batches of all ranks.
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

// Normalises inputs [N, C, ...] with the mean and the variance per channel over
// the mini-batches of all ranks of the process set, as if they were one batch.
// C = options.num_features(). N may differ by rank and may be 0. dtype:
// float32, float64, float16 or bfloat16.
//
//   hvdlite::SyncBatchNorm norm(/*num_features=*/64);
//   const at::Tensor output = norm(input);  // [N, 64, height, width]
//
// The gradient of the input also takes all ranks into account. The gradients of
// weight and bias are this rank's share; DistributedOptimizer reduces them like
// those of any other parameter. Parameters and buffers have the same names as
// in torch::nn::BatchNorm, so either class can read archives of the other.
//
// In training, forward() and backward() are collective. Evaluation with running
// statistics is not. Statistics are computed in float32, for float64 inputs in
// float64. Throws c10::Error for inputs of other shapes, and in training if
// there is only one value per channel over all ranks. In training all ranks
// throw it with the same text. Modules are identified by the order of their
// first use in training; this order must be the same on all ranks.
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
  // The name of the module's operations, the same in every step. A copy of the
  // module gets another name.
  class Name {
   public:
    Name() = default;
    Name(const Name&) {}
    Name& operator=(const Name&) { return *this; }

    // Takes a new name on the first call in a world, and after all ranks have
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
