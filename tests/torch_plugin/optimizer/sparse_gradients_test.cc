// Special cases of sparse embeddings' gradients, on any number of ranks.
// training_equivalence_test.cc trains WordsModel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <memory>
#include <vector>

#include "tests/torch_plugin/error_text.h"
#include "tests/torch_plugin/training_models.h"

namespace hvdlite {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Options = DistributedOptimizerOptions;

// The dense members of the group are reduced when the embedding's gradient is
// there. In step 2 only the embedding has a gradient.
TEST(SparseGradientsTest, GroupWithDenseParametersTrainsAsOneProcess) {
  for (const int64_t passes : {1, 2}) {
    WordsModel words;
    WordsModel alone;
    const auto parameters = [](const WordsModel& of) {
      return std::vector<torch::Tensor>{of.embedding->weight, of.linear->weight,
                                        of.linear->bias};
    };
    DistributedOptimizer optimizer(
        std::make_unique<torch::optim::SGD>(parameters(words), 0.01),
        words.named_parameters(),
        Options().op(ReduceOp::Sum).groups(1).backward_passes_per_step(passes));
    torch::optim::SGD optimizer_alone(parameters(alone), 0.01);
    for (int step = 0; step < 4; ++step) {
      const auto backward = [&](WordsModel& of, int member, int pass) {
        torch::Tensor vectors =
            of.embedding->forward(WordsModel::TextOf(member, 10 * step + pass));
        if (&of == &words) {
          vectors.register_hook([](const torch::Tensor&) { barrier(); });
        }
        const torch::Tensor output =
            step == 2 ? vectors : of.linear->forward(vectors);
        output.square().sum().backward();
      };
      optimizer.zero_grad();
      DropGradients(alone);
      for (int pass = 0; pass < passes; ++pass) {
        backward(words, rank(), pass);
        for (int i = 0; i < size(); ++i) backward(alone, i, pass);
      }
      optimizer.step();
      optimizer_alone.step();
      ExpectClose(words, alone);
    }
  }
}

// Rank 0 has a sparse gradient, the last rank a dense one, and others none.
TEST(SparseGradientsTest, SparseDenseAndMissingGradientsAddUp) {
  torch::Tensor weight = torch::zeros({40, 2}).requires_grad_();
  DistributedOptimizer optimizer =
      DistributeSgd({{"weight", weight}}, Options().op(ReduceOp::Sum));
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
  // The sum must not be counted twice.
  optimizer.synchronize();
  EXPECT_EQ(weight.grad().to_dense()[1][0].item<double>(), 1);
  // No rank has a gradient.
  optimizer.zero_grad();
  optimizer.step();
  EXPECT_FALSE(weight.grad().defined());
}

// A gradient that was reduced before has a place among the views; a sparse
// gradient has none.
TEST(SparseGradientsTest, GradientsThatAreMadeDenseHaveAPlace) {
  for (const bool as_dense : {false, true}) {
    WordsModel words;
    const torch::Tensor weight = words.embedding->weight;
    DistributedOptimizer optimizer = DistributeSgd(
        words.named_parameters(),
        Options().sparse_as_dense(as_dense).gradient_as_fusion_view(true));
    void* place = nullptr;
    for (int step = 0; step < 4; ++step) {
      optimizer.zero_grad();
      if (step == 0) {
        weight.square().sum().backward();
      } else {
        words.LossOf(rank(), size(), step).backward();
      }
      optimizer.step();
      EXPECT_EQ(weight.grad().is_sparse(), step > 0 && !as_dense);
      if (step == 0) place = weight.grad().data_ptr();
      if (as_dense) {
        EXPECT_EQ(weight.grad().data_ptr(), place);
      }
    }
    ExpectSameOnAllRanks(words);
  }
}

TEST(SparseGradientsTest, BackwardIntoACompleteGradientIsRefused) {
  WordsModel words;
  DistributedOptimizer optimizer = DistributeSgd(words.named_parameters());
  const auto backward = [&] {
    words.embedding->forward(WordsModel::TextOf(rank(), 0)).sum().backward();
  };
  for (int step = 0; step < 2; ++step) {
    backward();
    EXPECT_THAT(ErrorText(backward), HasSubstr("embedding.weight"));
    optimizer.step();
    optimizer.zero_grad();
  }
}

TEST(SparseGradientsTest, AdasumRejectsSparseGradientsOnEveryRank) {
  WordsModel words(/*sparse=*/rank() == 0);
  DistributedOptimizer optimizer =
      DistributeSgd(words.named_parameters(), Options().op(ReduceOp::Adasum));
  words.LossOf(rank(), size(), 0).backward();
  EXPECT_THAT(ErrorText([&] { optimizer.step(); }),
              AllOf(HasSubstr("embedding.weight"), HasSubstr("on rank 0"),
                    HasSubstr("sparse_as_dense(true)")));
}

// In bfloat16, 256 + 1 is 256.
TEST(SparseGradientsTest, SixteenBitRowsOfOneWordAreAddedInFloat32) {
  for (const bool as_dense : {false, true}) {
    const torch::Tensor weight =
        torch::zeros({4, 1}, torch::kBFloat16).requires_grad_();
    DistributedOptimizer optimizer = DistributeSgd(
        {{"weight", weight}}, Options().sparse_as_dense(as_dense));
    weight.mutable_grad() = torch::sparse_coo_tensor(
        torch::ones({1, 4}, torch::kLong),
        torch::tensor({256.0, 1.0, 1.0, 1.0}).unsqueeze(1).to(torch::kBFloat16),
        {4, 1});
    optimizer.synchronize();
    EXPECT_EQ(weight.grad().to_dense()[1][0].item<double>(), 260) << as_dense;
    optimizer.zero_grad();
  }
}

}  // namespace
}  // namespace hvdlite
