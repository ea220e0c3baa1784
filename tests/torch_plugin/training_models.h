// Models that several ranks train together, each on samples of its own.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>

#include "tests/torch_plugin/small_net.h"

namespace hvdlite {

struct TrainedModel : torch::nn::Module {
  // Returns the loss of the samples of one of `members` ranks in a step.
  virtual torch::Tensor LossOf(int member, int members, int step) = 0;
  // Called before each step.
  virtual void Prepare(int /*step*/) {}
};

struct NetModel : TrainedModel {
  torch::Tensor LossOf(int member, int members, int step) override {
    return Loss(net, Shard(WholeBatch(step, members), member));
  }
  Net net = register_module("net", MakeNet());
};

inline void Freeze(torch::nn::Module& module, bool frozen) {
  for (torch::Tensor& one : module.parameters()) one.requires_grad_(!frozen);
}

// The convolution is frozen for two steps, then trained for two, and so on.
struct FreezingModel : NetModel {
  FreezingModel() { Prepare(0); }
  void Prepare(int step) override {
    Freeze(*net->convolution, step / 2 % 2 == 0);
  }
};

// Parameters of all kinds.
struct MixedModel : NetModel {
  MixedModel() {
    const torch::NoGradGuard no_grad;
    net->convolution->weight.set_data(
        net->convolution->weight.contiguous(torch::MemoryFormat::ChannelsLast));
  }
  // Uses the convolution twice, `lopsided` on the first member only.
  torch::Tensor LossOf(int member, int members, int step) override {
    const Batch batch = Shard(WholeBatch(step, members), member);
    torch::Tensor hidden = torch::relu(net->convolution->forward(batch.input));
    hidden = hidden + net->convolution->forward(hidden.slice(1, 0, 3));
    torch::Tensor loss =
        torch::mse_loss(net->linear->forward(hidden.flatten(1)), batch.target);
    loss = loss + (strided.square().sum() + small.square().sum()) *
                      ((member + 1.0) / members);
    if (member == 0) loss = loss + lopsided.square().sum();
    return loss;
  }
  torch::Tensor Ones(const char* name, int64_t count, torch::Dtype type,
                     bool requires_grad = true) {
    return register_parameter(name, torch::ones({count}, type), requires_grad);
  }
  torch::Tensor lopsided = Ones("lopsided", 7, torch::kDouble);
  torch::Tensor unused = Ones("unused", 5, torch::kDouble);
  torch::Tensor frozen = Ones("frozen", 5, torch::kDouble, false);
  torch::Tensor small = Ones("small", 3, torch::kFloat);
  torch::Tensor strided = register_parameter(
      "strided", torch::ones({4, 6}, torch::kDouble).slice(1, 0, 3).detach());
};

// The first member uses the first head's loss; the others use the second's.
struct TwoHeadsModel : TrainedModel {
  TwoHeadsModel() {
    torch::manual_seed(11);
    trunk = register_module("trunk", torch::nn::Linear(5, 6));
    first = register_module("first", torch::nn::Linear(6, 4));
    second = register_module("second", torch::nn::Linear(4, 4));
    to(torch::kDouble);
  }
  torch::Tensor LossOf(int member, int /*members*/, int step) override {
    torch::manual_seed(static_cast<uint64_t>(100 * step + member));
    const torch::Tensor input = torch::randn({3, 5}, torch::kDouble);
    const torch::Tensor output =
        first->forward(torch::relu(trunk->forward(input)));
    const torch::Tensor head =
        member == 0 ? output : second->forward(torch::relu(output));
    return head.square().mean();
  }
  torch::nn::Linear trunk{nullptr};
  torch::nn::Linear first{nullptr};
  torch::nn::Linear second{nullptr};
};

// Complex and real parameters.
struct ComplexModel : TrainedModel {
  static torch::Tensor Random(at::IntArrayRef shape, int seed) {
    torch::manual_seed(static_cast<uint64_t>(seed));
    return torch::randn(shape, torch::kComplexDouble);
  }
  // The bias's gradient is conjugated once more in backward.
  torch::Tensor LossOf(int member, int /*members*/, int step) override {
    const torch::Tensor input = Random({4, 3}, 100 * step + 2 * member);
    const torch::Tensor target = Random({4}, 100 * step + 2 * member + 1);
    const torch::Tensor output = input.matmul(weight) * scale + bias.conj();
    return torch::view_as_real(output - target).square().sum() / 4;
  }
  torch::Tensor weight = register_parameter("weight", Random({3}, 1));
  torch::Tensor bias = register_parameter("bias", Random({}, 2));
  torch::Tensor scale =
      register_parameter("scale", torch::ones({}, torch::kDouble));
};

// Embeddings with sparse gradients.
struct WordsModel : TrainedModel {
  explicit WordsModel(bool sparse = true) {
    torch::manual_seed(3);
    const auto embed = [&](int64_t rows, int64_t columns) {
      return torch::nn::Embedding(
          torch::nn::EmbeddingOptions(rows, columns).sparse(sparse));
    };
    embedding = register_module("embedding", embed(40, 3));
    linear = register_module("linear", torch::nn::Linear(3, 2));
    unused = register_module("unused", embed(5, 2));
    to(torch::kDouble);
  }
  // Some words appear on several ranks.
  static torch::Tensor TextOf(int member, int step) {
    torch::manual_seed(static_cast<uint64_t>(50 + 100 * step + member));
    return torch::randint(0, 12, {4}, torch::kLong);
  }
  torch::Tensor LossOf(int member, int /*members*/, int step) override {
    return linear->forward(embedding->forward(TextOf(member, step)))
        .square()
        .mean();
  }
  torch::nn::Embedding embedding{nullptr};
  torch::nn::Linear linear{nullptr};
  torch::nn::Embedding unused{nullptr};
};

// Drops the gradients in any version of LibTorch.
inline void DropGradients(const torch::nn::Module& module) {
  for (torch::Tensor& parameter : module.parameters()) {
    parameter.mutable_grad().reset();
  }
}

}  // namespace hvdlite
