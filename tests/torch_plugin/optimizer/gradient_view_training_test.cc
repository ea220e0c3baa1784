// Training with and without gradient_as_fusion_view gives the same parameters,
// on any number of ranks: to the last bit on two, where the order in which
// ranks are added makes no difference.
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/torch_plugin/small_net.h"

namespace hvdlite {
namespace {

using Options = DistributedOptimizerOptions;

// Parameters of all kinds.
struct MixedNetImpl : torch::nn::Module {
  MixedNetImpl()
      : net(register_module("net", MakeNet())),
        lopsided(
            register_parameter("lopsided", torch::ones({7}, torch::kDouble))),
        unused(register_parameter("unused", torch::ones({5}, torch::kDouble))),
        frozen(register_parameter("frozen", torch::ones({5}, torch::kDouble),
                                  /*requires_grad=*/false)),
        small(register_parameter("small", torch::ones({3}))),
        strided(register_parameter(
            "strided",
            torch::ones({4, 6}, torch::kDouble).slice(1, 0, 3).detach())) {
    const torch::NoGradGuard no_grad;
    net->convolution->weight.set_data(
        net->convolution->weight.contiguous(torch::MemoryFormat::ChannelsLast));
  }

  // Uses the convolution twice, `lopsided` on rank 0 only.
  torch::Tensor Loss(const Batch& batch) {
    torch::Tensor hidden = torch::relu(net->convolution->forward(batch.input));
    hidden = hidden + net->convolution->forward(hidden.slice(1, 0, 3));
    torch::Tensor loss =
        torch::mse_loss(net->linear->forward(hidden.flatten(1)), batch.target);
    loss =
        loss + (strided.square().sum() + small.square().sum()) * (rank() + 1);
    if (rank() == 0) loss = loss + lopsided.square().sum();
    return loss;
  }

  Net net;
  torch::Tensor lopsided;
  torch::Tensor unused;
  torch::Tensor frozen;
  torch::Tensor small;
  torch::Tensor strided;
};
TORCH_MODULE(MixedNet);

using MakeMixedOptimizer =
    std::function<std::unique_ptr<torch::optim::Optimizer>(MixedNet&)>;

std::unique_ptr<torch::optim::Optimizer> MakeMomentum(MixedNet& net) {
  return std::make_unique<torch::optim::SGD>(
      net->parameters(),
      torch::optim::SGDOptions(0.05).momentum(0.9).weight_decay(0.1));
}

std::unique_ptr<torch::optim::Optimizer> MakeAdam(MixedNet& net) {
  return std::make_unique<torch::optim::Adam>(
      net->parameters(), torch::optim::AdamOptions(0.05).weight_decay(0.1));
}

// A net and its optimizer.
class Training {
 public:
  Training(const MakeMixedOptimizer& make, const Options& options)
      : passes_(options.backward_passes_per_step()),
        optimizer_(make(net_), net_->named_parameters(), options) {}

  MixedNet& net() { return net_; }
  DistributedOptimizer& optimizer() { return optimizer_; }

  void Step(int step, bool clips) {
    for (int64_t pass = 0; pass < passes_; ++pass) {
      const int batch = 10 * step + static_cast<int>(pass);
      net_->Loss(Shard(WholeBatch(batch))).backward();
    }
    if (clips) {
      optimizer_.synchronize();
      torch::nn::utils::clip_grad_norm_(net_->parameters(), 0.5);
    }
    optimizer_.step();
  }

 private:
  const int64_t passes_;
  MixedNet net_;
  DistributedOptimizer optimizer_;
};

// `exact`: to the last bit, on up to two ranks.
bool Same(const torch::Tensor& actual, const torch::Tensor& expected,
          bool exact = true) {
  if (actual.defined() != expected.defined()) return false;
  if (!actual.defined()) return true;
  return exact && size() <= 2 ? actual.equal(expected)
                              : torch::allclose(actual, expected, 1e-5, 1e-7);
}

void ExpectSame(MixedNet& actual, MixedNet& expected, bool exact = true) {
  const auto wanted = expected->named_parameters();
  for (const auto& item : actual->named_parameters()) {
    EXPECT_TRUE(Same(item.value(), wanted[item.key()], exact)) << item.key();
    EXPECT_TRUE(Same(item.value().grad(), wanted[item.key()].grad(), exact))
        << "gradient of " << item.key();
  }
}

// How gradients are dropped between two steps.
enum class Drop { kToNone, kToZero, kByTheProgram, kByTurns };

void DropGradients(Training& training, Drop drop, int step) {
  if (drop == Drop::kByTheProgram) {
    for (torch::Tensor& parameter : training.net()->parameters()) {
      parameter.mutable_grad().reset();
    }
    return;
  }
  training.optimizer().zero_grad(drop == Drop::kToNone ||
                                 (drop == Drop::kByTurns && step % 2 == 0));
}

void ExpectViewsChangeNothing(const MakeMixedOptimizer& make,
                              const Options& options, Drop drop,
                              bool clips = false) {
  Training plain(make, options);
  Training views(make, Options(options).gradient_as_fusion_view(true));
  for (int step = 0; step < 4; ++step) {
    for (Training* training : {&plain, &views}) {
      training->Step(step, clips);
    }
    // What Adasum rounds depends on what it reduces at the same time.
    ExpectSame(views.net(), plain.net(), options.op() != ReduceOp::Adasum);
    EXPECT_TRUE(views.net()->unused.eq(1).all().item<bool>());
    EXPECT_FALSE(views.net()->unused.grad().defined());
    for (Training* training : {&plain, &views}) {
      DropGradients(*training, drop, step);
    }
  }
  ExpectSameOnAllRanks(*views.net());
  EXPECT_FALSE(views.net()->strided.eq(1).any().item<bool>());
  EXPECT_FALSE(views.net()->lopsided.eq(1).any().item<bool>());
}

class GradientViewTrainingTest : public ::testing::TestWithParam<int64_t> {};

INSTANTIATE_TEST_SUITE_P(Groups, GradientViewTrainingTest,
                         ::testing::Values(0, 1, 3));

TEST_P(GradientViewTrainingTest, GivesTheSameHoweverGradientsAreDropped) {
  for (const Drop drop :
       {Drop::kToNone, Drop::kToZero, Drop::kByTheProgram, Drop::kByTurns}) {
    for (const auto& make : {MakeMomentum, MakeAdam}) {
      ExpectViewsChangeNothing(make, Options().groups(GetParam()), drop);
    }
  }
}

TEST_P(GradientViewTrainingTest, GivesTheSameWithSeveralBackwardPasses) {
  for (const Drop drop : {Drop::kToNone, Drop::kToZero}) {
    ExpectViewsChangeNothing(
        MakeMomentum, Options().groups(GetParam()).backward_passes_per_step(2),
        drop);
  }
}

TEST_P(GradientViewTrainingTest, GivesTheSameWithClipping) {
  ExpectViewsChangeNothing(MakeMomentum, Options().groups(GetParam()),
                           Drop::kToNone, /*clips=*/true);
}

TEST_P(GradientViewTrainingTest, GivesTheSameWithEveryOp) {
  for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Adasum}) {
    ExpectViewsChangeNothing(MakeMomentum, Options().groups(GetParam()).op(op),
                             Drop::kToNone);
  }
  ExpectViewsChangeNothing(
      MakeMomentum, Options().groups(GetParam()).gradient_predivide_factor(2.0),
      Drop::kToNone);
}

// On more ranks 16 bits lose different amounts in different orders.
TEST_P(GradientViewTrainingTest, GivesTheSameWithCompression) {
  if (size() > 2) return;
  for (const Compression compression : {Compression::FP16, Compression::BF16}) {
    ExpectViewsChangeNothing(
        MakeMomentum, Options().groups(GetParam()).compression(compression),
        Drop::kByTurns);
  }
}

TEST_P(GradientViewTrainingTest, GoesOnFromACheckpoint) {
  const Options options =
      Options().groups(GetParam()).gradient_as_fusion_view(true);
  Training first(MakeAdam, options);
  for (int step = 0; step < 2; ++step) {
    first.Step(step, /*clips=*/false);
    first.optimizer().zero_grad();
  }
  std::stringstream checkpoint;
  torch::save(first.optimizer().inner(), checkpoint);
  Training second(MakeAdam, options);
  {
    const torch::NoGradGuard no_grad;
    for (const auto& item : first.net()->named_parameters()) {
      second.net()->named_parameters()[item.key()].copy_(item.value());
    }
  }
  torch::load(second.optimizer().inner(), checkpoint);
  for (int step = 2; step < 4; ++step) {
    for (Training* training : {&first, &second}) {
      training->Step(step, /*clips=*/false);
    }
    ExpectSame(second.net(), first.net());
    first.optimizer().zero_grad();
    second.optimizer().zero_grad();
  }
}

TEST_P(GradientViewTrainingTest, TrainsAsOneProcessWithClosures) {
  ExpectTrainsAsOneProcess(
      [](Net& net) {
        return std::make_unique<torch::optim::LBFGS>(
            net->parameters(),
            torch::optim::LBFGSOptions(1).max_iter(4).line_search_fn(
                "strong_wolfe"));
      },
      MakeNet(), Options().groups(GetParam()).gradient_as_fusion_view(true),
      1e-6);
}

TEST_P(GradientViewTrainingTest, TrainsAsOneProcessInAProcessSet) {
  const ProcessSet even = EvenRanks();
  if (even.included()) {
    ExpectTrainsAsOneProcess(MakeSgd, MakeNet(),
                             Options()
                                 .groups(GetParam())
                                 .process_set(even)
                                 .gradient_as_fusion_view(true));
  }
  remove_process_set(even);
}

// An embedding's gradient has no place unless it is made dense, or is dense on
// all ranks in the first steps.
TEST_P(GradientViewTrainingTest, GivesTheSameWithSparseGradients) {
  for (const bool as_dense : {false, true}) {
    std::vector<std::vector<torch::Tensor>> results;
    for (const bool views : {false, true}) {
      torch::manual_seed(5);
      torch::nn::Sequential net(
          torch::nn::Embedding(torch::nn::EmbeddingOptions(9, 3).sparse(true)),
          torch::nn::Linear(3, 2));
      DistributedOptimizer optimizer(
          std::make_unique<torch::optim::SGD>(net->parameters(), 0.1),
          net->named_parameters(),
          Options()
              .groups(GetParam())
              .sparse_as_dense(as_dense)
              .gradient_as_fusion_view(views));
      const torch::Tensor embedding = net->parameters()[0];
      void* place = nullptr;
      for (int step = 0; step < 4; ++step) {
        optimizer.zero_grad();
        torch::Tensor loss =
            net->forward(torch::tensor({step, 2 * rank(), 3})).square().sum();
        if (step == 0) loss = embedding.square().sum();
        loss.backward();
        optimizer.step();
        EXPECT_EQ(embedding.grad().is_sparse(), step > 0 && !as_dense);
        if (step == 0) place = embedding.grad().data_ptr();
        if (views && as_dense) {
          EXPECT_EQ(embedding.grad().data_ptr(), place);
        }
      }
      results.push_back(net->parameters());
    }
    for (size_t i = 0; i < results[0].size(); ++i) {
      EXPECT_TRUE(Same(results[1][i], results[0][i])) << i;
    }
  }
}

}  // namespace
}  // namespace hvdlite
