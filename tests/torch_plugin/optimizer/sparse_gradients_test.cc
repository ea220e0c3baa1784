// Gradients of sparse embeddings, on any number of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/torch_plugin/error_text.h"

namespace hvdlite {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Options = DistributedOptimizerOptions;

constexpr int64_t kRows = 40;

struct WordsImpl : torch::nn::Module {
  explicit WordsImpl(bool sparse)
      : embedding(register_module(
            "embedding",
            torch::nn::Embedding(
                torch::nn::EmbeddingOptions(kRows, 3).sparse(sparse)))),
        linear(register_module("linear", torch::nn::Linear(3, 2))),
        unused(register_module(
            "unused", torch::nn::Embedding(
                          torch::nn::EmbeddingOptions(5, 2).sparse(sparse)))) {
    to(torch::kDouble);
  }
  torch::Tensor forward(const torch::Tensor& words) {
    return linear->forward(embedding->forward(words));
  }
  torch::nn::Embedding embedding;
  torch::nn::Linear linear;
  torch::nn::Embedding unused;
};
TORCH_MODULE(Words);

Words MakeWords(bool sparse) {
  torch::manual_seed(3);
  return Words(sparse);
}

// The same on every rank; some words appear on several ranks.
torch::Tensor WholeText(int step) {
  torch::manual_seed(static_cast<uint64_t>(50 + step));
  return torch::randint(0, 12, {4 * size()}, torch::kLong);
}

torch::Tensor ShardOf(const torch::Tensor& text) {
  return text.slice(0, 4 * rank(), 4 * (rank() + 1));
}

torch::Tensor Loss(Words& words, const torch::Tensor& text) {
  return words->forward(text).square().mean();
}

template <typename Optimizer, typename OptimizerOptions>
void ExpectTrainsAsOneProcess(const OptimizerOptions& optimizer_options,
                              const Options& options) {
  Words words = MakeWords(/*sparse=*/true);
  Words alone = MakeWords(/*sparse=*/true);
  DistributedOptimizer optimizer(
      std::make_unique<Optimizer>(words->parameters(), optimizer_options),
      words->named_parameters(), options);
  Optimizer optimizer_alone(alone->parameters(), optimizer_options);
  for (int step = 0; step < 4; ++step) {
    const torch::Tensor text = WholeText(step);
    for (torch::Tensor& parameter : alone->parameters()) {
      parameter.mutable_grad().reset();
    }
    const double scale = options.op() == ReduceOp::Sum ? size() : 1;
    (Loss(alone, text) * scale).backward();
    optimizer_alone.step();
    optimizer.zero_grad();
    Loss(words, ShardOf(text)).backward();
    optimizer.step();
    EXPECT_EQ(words->embedding->weight.grad().is_sparse(),
              !options.sparse_as_dense());
    EXPECT_FALSE(words->unused->weight.grad().defined());
    for (const auto& item : words->named_parameters()) {
      EXPECT_TRUE(torch::allclose(
          item.value(), alone->named_parameters()[item.key()], 1e-9, 1e-11))
          << item.key() << " in step " << step;
    }
  }
}

TEST(SparseGradientsTest, SgdTrainsAsOneProcess) {
  for (const int64_t groups : {0, 1}) {
    for (const ReduceOp op : {ReduceOp::Average, ReduceOp::Sum}) {
      ExpectTrainsAsOneProcess<torch::optim::SGD>(
          torch::optim::SGDOptions(0.1), Options().groups(groups).op(op));
    }
  }
}

// The dense members of the group are reduced when the embedding's gradient
// comes. In step 2 only the embedding has a gradient.
TEST(SparseGradientsTest, GroupWithDenseParametersTrainsAsOneProcess) {
  for (const int64_t passes : {1, 2}) {
    Words words = MakeWords(/*sparse=*/true);
    Words alone = MakeWords(/*sparse=*/true);
    const auto parameters = [](Words& of) {
      return std::vector<torch::Tensor>{of->embedding->weight,
                                        of->linear->weight, of->linear->bias};
    };
    DistributedOptimizer optimizer(
        std::make_unique<torch::optim::SGD>(parameters(words), 0.01),
        words->named_parameters(),
        Options().op(ReduceOp::Sum).groups(1).backward_passes_per_step(passes));
    torch::optim::SGD optimizer_alone(parameters(alone), 0.01);
    for (int step = 0; step < 4; ++step) {
      optimizer.zero_grad();
      for (torch::Tensor& parameter : alone->parameters()) {
        parameter.mutable_grad().reset();
      }
      for (int pass = 0; pass < passes; ++pass) {
        const torch::Tensor text = WholeText(10 * step + pass);
        const auto loss = [&](Words& of, const torch::Tensor& vectors) {
          return step == 2 ? vectors.square().sum()
                           : of->linear->forward(vectors).square().sum();
        };
        torch::Tensor vectors = words->embedding->forward(ShardOf(text));
        vectors.register_hook([](const torch::Tensor&) { barrier(); });
        loss(words, vectors).backward();
        loss(alone, alone->embedding->forward(text)).backward();
      }
      optimizer.step();
      optimizer_alone.step();
      for (size_t i = 0; i < 3; ++i) {
        EXPECT_TRUE(torch::allclose(parameters(words)[i], parameters(alone)[i],
                                    1e-9, 1e-11))
            << "parameter " << i << " in step " << step;
      }
    }
  }
}

TEST(SparseGradientsTest, AdagradTrainsAsOneProcess) {
  ExpectTrainsAsOneProcess<torch::optim::Adagrad>(
      torch::optim::AdagradOptions(0.1), Options());
}

TEST(SparseGradientsTest, PredividedAverageTrainsAsOneProcess) {
  ExpectTrainsAsOneProcess<torch::optim::SGD>(
      torch::optim::SGDOptions(0.1), Options().gradient_predivide_factor(3));
}

TEST(SparseGradientsTest, AsDenseTrainsAsOneProcess) {
  for (const int64_t groups : {0, 1}) {
    ExpectTrainsAsOneProcess<torch::optim::SGD>(
        torch::optim::SGDOptions(0.1),
        Options().groups(groups).sparse_as_dense(true));
    ExpectTrainsAsOneProcess<torch::optim::SGD>(
        torch::optim::SGDOptions(0.1).momentum(0.9),
        Options().groups(groups).sparse_as_dense(true));
  }
}

// Rank 0 has a sparse gradient, the last rank a dense one, others have none.
TEST(SparseGradientsTest, SparseDenseAndMissingGradientsAddUp) {
  torch::Tensor weight = torch::zeros({kRows, 2}).requires_grad_();
  torch::OrderedDict<std::string, torch::Tensor> parameters;
  parameters.insert("weight", weight);
  DistributedOptimizer optimizer(
      std::make_unique<torch::optim::SGD>(parameters.values(), 1.0), parameters,
      Options().op(ReduceOp::Sum));
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    torch::Tensor expected = torch::zeros_like(weight);
    expected[1] += 1;
    if (size() > 1) expected[2] += 5;
    if (rank() == 0) {
      torch::embedding(weight, torch::full({1}, 1, torch::kLong), -1, false,
                       /*sparse=*/true)
          .sum()
          .backward();
    } else if (rank() == size() - 1) {
      (weight[2].sum() * 5).backward();
    }
    optimizer.synchronize();
    ASSERT_TRUE(weight.grad().defined());
    EXPECT_TRUE(weight.grad().is_sparse());
    EXPECT_TRUE(weight.grad().to_dense().equal(expected)) << step;
  }
  // The sum is not counted twice.
  optimizer.synchronize();
  EXPECT_EQ(weight.grad().to_dense()[1][0].item<double>(), 1);
  // Nobody has one.
  optimizer.zero_grad();
  optimizer.step();
  EXPECT_FALSE(weight.grad().defined());
}

TEST(SparseGradientsTest, BackwardIntoACompleteGradientIsRefused) {
  Words words = MakeWords(/*sparse=*/true);
  DistributedOptimizer optimizer(
      std::make_unique<torch::optim::SGD>(words->parameters(), 0.1),
      words->named_parameters());
  for (int step = 0; step < 2; ++step) {
    words->embedding->forward(ShardOf(WholeText(0))).sum().backward();
    EXPECT_THAT(
        ErrorText([&] {
          words->embedding->forward(ShardOf(WholeText(0))).sum().backward();
        }),
        HasSubstr("embedding.weight"));
    optimizer.step();
    optimizer.zero_grad();
  }
}

TEST(SparseGradientsTest, AdasumRefusesThemOnEveryRank) {
  Words words = MakeWords(/*sparse=*/rank() == 0);
  DistributedOptimizer optimizer(
      std::make_unique<torch::optim::SGD>(words->parameters(), 0.1),
      words->named_parameters(), Options().op(ReduceOp::Adasum));
  Loss(words, ShardOf(WholeText(0))).backward();
  EXPECT_THAT(ErrorText([&] { optimizer.step(); }),
              AllOf(HasSubstr("embedding.weight"), HasSubstr("on rank 0"),
                    HasSubstr("sparse_as_dense(true)")));
}

TEST(SparseGradientsTest, InAProcessSet) {
  const ProcessSet last = add_process_set({size() - 1});
  if (last.included()) {
    Words words = MakeWords(/*sparse=*/true);
    DistributedOptimizer optimizer(
        std::make_unique<torch::optim::SGD>(words->parameters(), 0.1),
        words->named_parameters(), Options().process_set(last));
    const torch::Tensor text = ShardOf(WholeText(0));
    Loss(words, text).backward();
    optimizer.synchronize();
    Words alone = MakeWords(/*sparse=*/true);
    Loss(alone, text).backward();
    EXPECT_TRUE(torch::allclose(words->embedding->weight.grad().to_dense(),
                                alone->embedding->weight.grad().to_dense()));
  }
  remove_process_set(last);
}

// Rank 1, which is not in the set, does nothing meanwhile.
TEST(SparseGradientsTest, InAProcessSetOfTwo) {
  if (size() < 3) return;
  const ProcessSet set = add_process_set({0, 2});
  if (set.included()) {
    Words words = MakeWords(/*sparse=*/true);
    DistributedOptimizer optimizer(
        std::make_unique<torch::optim::SGD>(words->parameters(), 0.1),
        words->named_parameters(), Options().process_set(set));
    Words alone = MakeWords(/*sparse=*/true);
    torch::optim::SGD optimizer_alone(alone->parameters(), 0.1);
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      Loss(words, ShardOf(WholeText(step))).backward();
      optimizer.step();
      for (torch::Tensor& parameter : alone->parameters()) {
        parameter.mutable_grad().reset();
      }
      const torch::Tensor text = WholeText(step);
      Loss(alone, torch::cat({text.slice(0, 0, 4), text.slice(0, 8, 12)}))
          .backward();
      optimizer_alone.step();
      EXPECT_TRUE(words->embedding->weight.grad().is_sparse());
      EXPECT_TRUE(torch::allclose(words->embedding->weight,
                                  alone->embedding->weight, 1e-9, 1e-11));
    }
  }
  remove_process_set(set);
}

// In bfloat16, 256 + 1 is 256.
TEST(SparseGradientsTest, SixteenBitRowsOfOneWordAreAddedInFloat32) {
  for (const bool as_dense : {false, true}) {
    const torch::Tensor weight =
        torch::zeros({4, 1}, torch::kBFloat16).requires_grad_();
    DistributedOptimizer optimizer(
        std::make_unique<torch::optim::SGD>(std::vector<torch::Tensor>{weight},
                                            1.0),
        {{"weight", weight}}, Options().sparse_as_dense(as_dense));
    weight.mutable_grad() = torch::sparse_coo_tensor(
        torch::ones({1, 4}, torch::kLong),
        torch::tensor({256.0, 1.0, 1.0, 1.0})
            .unsqueeze(1)
            .to(torch::kBFloat16),
        {4, 1});
    optimizer.synchronize();
    EXPECT_EQ(weight.grad().to_dense()[1][0].item<double>(), 260) << as_dense;
    optimizer.zero_grad();
  }
}

}  // namespace
}  // namespace hvdlite
