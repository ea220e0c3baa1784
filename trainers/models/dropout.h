// Dropping values out in training.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

namespace hvdlite::trainers {

// Dropout (Srivastava et al., JMLR 2014), as torch::nn::Dropout, for large
// activations: a random number of 64 bits decides about four values, where
// LibTorch draws one for each, on one thread. The share is rounded to a
// multiple of 1 / 65536.
class PackedDropoutImpl : public torch::nn::Module {
 public:
  // Throws std::invalid_argument unless 0 <= share < 1.
  explicit PackedDropoutImpl(double share);

  // In training sets this share of the values to zero, each by chance, and
  // scales the others so that the expectation stays; otherwise changes nothing.
  torch::Tensor forward(const torch::Tensor& input);

  void set_share(double share);

 private:
  int dropped_ = 0;  // share, in 65536ths
};
TORCH_MODULE(PackedDropout);

// Sets the share of values that every Dropout, Dropout2d and PackedDropout of
// the model sets to zero in training; 0: none.
void SetDropout(torch::nn::Module& model, double share);

}  // namespace hvdlite::trainers
