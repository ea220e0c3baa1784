// Multi-layer perceptron.
#pragma once

#include <torch/nn.h>

#include <cstdint>
#include <vector>

namespace hvdlite::trainers {

struct MlpOptions {
  std::vector<int64_t> widths = {784, 512, 512, 10};  // input to output
};

// Linear layers with ReLU between them. Input [N, ...] float with
// widths.front() values per sample, output [N, widths.back()] logits.
class MlpImpl : public torch::nn::Module {
 public:
  // Throws std::invalid_argument if there are fewer than two widths.
  explicit MlpImpl(const MlpOptions& options = {});
  torch::Tensor forward(const torch::Tensor& input);

 private:
  torch::nn::Sequential layers_;
};
TORCH_MODULE(Mlp);

}  // namespace hvdlite::trainers
