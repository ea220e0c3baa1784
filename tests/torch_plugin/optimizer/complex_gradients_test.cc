// Complex parameters, on any number of ranks.
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/torch_plugin/error_text.h"
#include "tests/torch_plugin/rank_values.h"

namespace hvdlite {
namespace {

using Options = DistributedOptimizerOptions;

constexpr int64_t kComplexRows = 4;  // of the batch, per rank

torch::Tensor Random(at::IntArrayRef shape, uint64_t seed) {
  torch::manual_seed(seed);
  return torch::randn(shape, torch::kComplexDouble);
}

// Complex and real parameters.
struct ComplexNetImpl : torch::nn::Module {
  ComplexNetImpl()
      : weight(register_parameter("weight", Random({3}, 1))),
        bias(register_parameter("bias", Random({}, 2))),
        scale(register_parameter("scale", torch::ones({}, torch::kDouble))) {}

  // Of rows [begin, end) of the batch of a step. The bias's gradient is
  // conjugated once more on its way back.
  torch::Tensor Loss(int step, int64_t begin, int64_t end) {
    const int64_t rows = kComplexRows * size();
    const torch::Tensor input = Random({rows, 3}, 10 + 2 * step);
    const torch::Tensor target = Random({rows}, 11 + 2 * step);
    const torch::Tensor output =
        input.slice(0, begin, end).matmul(weight) * scale + bias.conj();
    return torch::view_as_real(output - target.slice(0, begin, end))
               .square()
               .sum() /
           (end - begin);
  }

  torch::Tensor weight;
  torch::Tensor bias;
  torch::Tensor scale;
};
TORCH_MODULE(ComplexNet);

std::unique_ptr<torch::optim::Optimizer> MakeComplexSgd(ComplexNet& net) {
  return std::make_unique<torch::optim::SGD>(
      net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
}

TEST(ComplexGradientsTest, TrainingIsThatOfOneProcess) {
  const Options all_options[] = {
      Options(),
      Options().groups(1),
      Options().gradient_as_fusion_view(true),
      Options().groups(1).gradient_as_fusion_view(true),
      Options().gradient_predivide_factor(2),
      Options().op(ReduceOp::Sum)};
  for (const Options& options : all_options) {
    ComplexNet net;
    ComplexNet alone;
    DistributedOptimizer optimizer(MakeComplexSgd(net), net->named_parameters(),
                                   options);
    const auto optimizer_alone = MakeComplexSgd(alone);
    for (int step = 0; step < 4; ++step) {
      optimizer.zero_grad();
      torch::Tensor loss =
          net->Loss(step, kComplexRows * rank(), kComplexRows * (rank() + 1));
      if (options.op() == ReduceOp::Sum) loss = loss / size();
      loss.backward();
      optimizer.step();
      optimizer_alone->zero_grad();
      alone->Loss(step, 0, kComplexRows * size()).backward();
      optimizer_alone->step();
      for (const auto& item : net->named_parameters()) {
        EXPECT_TRUE(torch::allclose(
            item.value(), alone->named_parameters()[item.key()], 1e-9, 1e-11))
            << item.key() << " in step " << step;
      }
    }
  }
}

TEST(ComplexGradientsTest, ConjugationAndSignThatAreDueCount) {
  for (const bool views : {false, true}) {
    for (const int64_t groups : {0, 1}) {
      torch::Tensor weight =
          torch::zeros({2, 3}, torch::kComplexFloat).requires_grad_();
      torch::Tensor other = torch::zeros({5}).requires_grad_();
      torch::OrderedDict<std::string, torch::Tensor> parameters;
      parameters.insert("weight", weight);
      parameters.insert("other", other);
      DistributedOptimizer optimizer(
          std::make_unique<torch::optim::SGD>(parameters.values(), 1.0),
          parameters,
          Options()
              .op(ReduceOp::Sum)
              .groups(groups)
              .gradient_as_fusion_view(views));
      for (int step = 0; step < 3; ++step) {
        const auto values = [&](at::IntArrayRef shape, at::ScalarType type) {
          return Values(rank(), shape, type, step);
        };
        const auto sum = [&](at::IntArrayRef shape, at::ScalarType type) {
          return ReducedValues(ProcessSet().ranks(), shape, type, ReduceOp::Sum,
                               step);
        };
        {
          // Views that do not keep what they are views of: nobody else refers
          // to the gradients' memory.
          const at::AutoDispatchBelowADInplaceOrView guard;
          weight.mutable_grad() = values({2, 3}, torch::kComplexFloat).conj();
          other.mutable_grad() = at::_neg_view(values({5}, torch::kFloat));
        }
        ASSERT_TRUE(weight.grad().is_conj());
        ASSERT_TRUE(other.grad().is_neg());
        optimizer.synchronize();
        EXPECT_TRUE(
            weight.grad().equal(sum({2, 3}, torch::kComplexFloat).conj()));
        EXPECT_TRUE(other.grad().equal(-sum({5}, torch::kFloat)));
        optimizer.zero_grad();
      }
    }
  }
}

TEST(ComplexGradientsTest, AdasumAndTheLikeAreRefused) {
  ComplexNet net;
  const std::string text = ErrorText([&] {
    DistributedOptimizer(MakeComplexSgd(net), net->named_parameters(),
                         Options().op(ReduceOp::Adasum));
  });
  EXPECT_NE(text.find("parameter 'weight': Adasum is for floating-point "
                      "tensors, but the dtype is complex128"),
            std::string::npos)
      << text;
}

TEST(ComplexGradientsTest, SparseGradientsAreReduced) {
  torch::Tensor table =
      torch::zeros({9, 2}, torch::kComplexDouble).requires_grad_();
  torch::OrderedDict<std::string, torch::Tensor> parameters;
  parameters.insert("table", table);
  DistributedOptimizer optimizer(
      std::make_unique<torch::optim::SGD>(parameters.values(), 1.0), parameters,
      Options().op(ReduceOp::Average));
  const torch::Tensor values =
      Values(rank(), {1, 2}, torch::kComplexDouble).conj();
  table.mutable_grad() = torch::sparse_coo_tensor(
      torch::full({1, 1}, rank(), torch::kLong), values, {9, 2});
  optimizer.synchronize();
  const torch::Tensor gradient = table.grad().to_dense();
  for (int i = 0; i < size(); ++i) {
    EXPECT_TRUE(torch::allclose(
        gradient[i], Values(i, {2}, torch::kComplexDouble).conj() / size()));
  }
}

}  // namespace
}  // namespace hvdlite
