// Gradients with NaN or infinity, for each value of
// HVDLITE_NONFINITE_GRADIENTS.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/torch_plugin/same_error.h"
#include "tests/torch_plugin/small_net.h"

namespace hvdlite {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Mode() { return Config::from_env().nonfinite_gradients; }

// The last rank's gradient of linear.bias is not finite.
void BackwardWithNan(Net& net, int step) {
  const double factor = IsLast() ? std::nan("") : 1;
  (Loss(net, Shard(WholeBatch(step))).detach() * 0 +
   net->linear->bias[2] * factor + net->convolution->weight.sum())
      .backward();
}

void Backward(Net& net, int step) {
  Loss(net, Shard(WholeBatch(step))).backward();
}

bool AllFinite(const torch::nn::Module& module) {
  for (const torch::Tensor& parameter : module.parameters()) {
    if (!parameter.isfinite().all().item<bool>()) return false;
  }
  return true;
}

// What a healthy step, one with NaN, and two healthy ones do.
struct Outcome {
  std::string log;
  std::string error = "nothing was thrown";
  bool finite = false;
  int64_t skipped = 0;
};

Outcome TrainWithOneNan(const DistributedOptimizerOptions& options,
                        bool with_closure) {
  Net net = MakeNet();
  DistributedOptimizer optimizer = Distribute(
      net,
      [](Net& model) {
        return std::make_unique<torch::optim::Adam>(model->parameters(), 1e-3);
      },
      options);
  Outcome outcome;
  ::testing::internal::CaptureStderr();
  for (int step = 0; step < 4; ++step) {
    std::vector<torch::Tensor> before;
    for (const torch::Tensor& parameter : net->parameters()) {
      before.push_back(parameter.detach().clone());
    }
    const auto backward = [&] {
      optimizer.zero_grad();
      step == 1 ? BackwardWithNan(net, step) : Backward(net, step);
      return torch::ones({});
    };
    const std::string error = ErrorText([&] {
      if (with_closure) {
        optimizer.step(backward);
      } else {
        backward();
        optimizer.step();
      }
    });
    if (step == 1) outcome.error = error;
    if (step != 1) {
      EXPECT_EQ(error, "nothing was thrown");
    }
    const auto after = net->parameters();
    const bool is_left_out =
        step == 1 && (Mode() == "skip" || Mode() == "error");
    if (is_left_out) {
      for (size_t i = 0; i < after.size(); ++i) {
        EXPECT_TRUE(after[i].equal(before[i])) << i;
      }
    }
  }
  outcome.log = ::testing::internal::GetCapturedStderr();
  outcome.finite = AllFinite(*net);
  outcome.skipped = optimizer.skipped_steps();
  if (outcome.finite) ExpectSameOnAllRanks(*net);
  return outcome;
}

TEST(NonfiniteGradientsTest, OneRanksNanIsNamedAndTreatedAsAskedFor) {
  for (const bool with_closure : {false, true}) {
    for (const int64_t groups : {0, 1}) {
      for (const bool views : {false, true}) {
        const Outcome outcome =
            TrainWithOneNan(DistributedOptimizerOptions()
                                .groups(groups)
                                .gradient_as_fusion_view(views),
                            with_closure);
        const bool tells = Mode() == "warn" || Mode() == "skip";
        const std::string gradient =
            "the gradient of parameter 'linear.bias' has NaN or infinity in "
            "step 2";
        EXPECT_EQ(outcome.log.find(gradient + ", computed by this rank") !=
                      std::string::npos,
                  tells && IsLast())
            << outcome.log;
        EXPECT_EQ(outcome.skipped, Mode() == "skip" ? 1 : 0);
        EXPECT_EQ(outcome.finite, Mode() == "skip" || Mode() == "error");
        if (Mode() == "error") {
          EXPECT_THAT(outcome.error,
                      AllOf(HasSubstr(gradient),
                            HasSubstr("rank " + std::to_string(size() - 1))));
        } else {
          EXPECT_EQ(outcome.error, "nothing was thrown");
        }
        EXPECT_EQ(outcome.error, broadcast_object(outcome.error, 0));
        if (rank() == 0 && Mode() == "skip") {
          EXPECT_THAT(outcome.log, HasSubstr("all ranks skip step 2"));
        }
      }
    }
  }
}

TEST(NonfiniteGradientsTest, ASumThatOverflowsSkipsTheStepToo) {
  if (Mode() != "skip") GTEST_SKIP() << "only skipping looks at the result";
  torch::Tensor parameter = torch::ones({3}, torch::kHalf).requires_grad_();
  DistributedOptimizer optimizer(
      std::make_unique<torch::optim::SGD>(std::vector<torch::Tensor>{parameter},
                                          1e-5),
      {{{"weight", parameter}}},
      DistributedOptimizerOptions().op(ReduceOp::Sum));
  const auto step = [&](double gradient) {
    parameter.mutable_grad() = torch::full_like(parameter, gradient);
    optimizer.step();
    optimizer.zero_grad();
  };
  // The scale of a loss, halved until all ranks' sum fits.
  double gradient = 60'000;
  int64_t skipped = 0;
  while (true) {
    step(gradient);
    if (optimizer.skipped_steps() == skipped) break;
    EXPECT_TRUE(parameter.eq(1).all().item<bool>());
    skipped = optimizer.skipped_steps();
    gradient /= 2;
  }
  EXPECT_EQ(skipped, size() == 1 ? 0 : size() == 2 ? 1 : 2);
  EXPECT_FALSE(parameter.eq(1).any().item<bool>());
}

TEST(NonfiniteGradientsTest, SparseGradientsAreLookedAtToo) {
  torch::manual_seed(3);
  torch::nn::Embedding net(torch::nn::EmbeddingOptions(9, 2).sparse(true));
  DistributedOptimizer optimizer(
      std::make_unique<torch::optim::SGD>(net->parameters(), 0.1),
      net->named_parameters());
  std::string error;
  ::testing::internal::CaptureStderr();
  for (int step = 0; step < 4; ++step) {
    const double factor =
        step == 2 && IsLast() ? std::numeric_limits<double>::infinity() : 1;
    (net->forward(torch::tensor({1, 2})).sum() * factor).backward();
    const std::string text = ErrorText([&] { optimizer.step(); });
    optimizer.zero_grad();
    if (step == 2) error = text;
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  const std::string problem = "has NaN or infinity in step 3";
  if (Mode() == "error") {
    EXPECT_THAT(error, AllOf(HasSubstr(problem),
                             HasSubstr("rank " + std::to_string(size() - 1))));
    EXPECT_EQ(error, broadcast_object(error, 0));
  } else {
    EXPECT_EQ(error, "nothing was thrown");
    EXPECT_EQ(
        Mode() != "off" && IsLast(),
        log.find(problem + ", computed by this rank") != std::string::npos);
  }
  EXPECT_EQ(optimizer.skipped_steps(), Mode() == "skip" ? 1 : 0);
  EXPECT_EQ(AllFinite(*net), Mode() == "skip" || Mode() == "error");
}

TEST(NonfiniteGradientsTest, EitherPartOfAComplexGradientIsLookedAt) {
  // Large ones are looked at in another way.
  for (const int64_t count : {3, 1 << 18}) {
    for (const bool imaginary : {false, true}) {
      torch::Tensor parameter =
          torch::zeros({count}, torch::kComplexFloat).requires_grad_();
      DistributedOptimizer optimizer(
          std::make_unique<torch::optim::SGD>(
              std::vector<torch::Tensor>{parameter}, 1.0),
          {{{"weight", parameter}}});
      std::string error;
      ::testing::internal::CaptureStderr();
      for (int step = 0; step < 3; ++step) {
        parameter.mutable_grad() = torch::ones_like(parameter);
        if (step == 1 && IsLast()) {
          torch::view_as_real(parameter.mutable_grad())[1][imaginary ? 1 : 0] =
              -std::numeric_limits<double>::infinity();
        }
        const std::string text = ErrorText([&] { optimizer.step(); });
        optimizer.zero_grad();
        if (step == 1) error = text;
      }
      const std::string log = ::testing::internal::GetCapturedStderr();
      const std::string problem =
          "the gradient of parameter 'weight' has NaN or infinity in step 2";
      EXPECT_EQ(error.find(problem) != std::string::npos, Mode() == "error");
      EXPECT_EQ(log.find(problem) != std::string::npos,
                (Mode() == "warn" || Mode() == "skip") && IsLast())
          << log;
      EXPECT_EQ(optimizer.skipped_steps(), Mode() == "skip" ? 1 : 0);
      EXPECT_EQ(parameter.isfinite().all().item<bool>(),
                Mode() == "skip" || Mode() == "error");
    }
  }
}

TEST(NonfiniteGradientsTest, LargeFiniteGradientsAreNoProblem) {
  // Their sum, by which large gradients are looked at, is infinite.
  torch::Tensor parameter = torch::zeros({1 << 19}).requires_grad_();
  DistributedOptimizer optimizer(
      std::make_unique<torch::optim::SGD>(std::vector<torch::Tensor>{parameter},
                                          1e-30),
      {{{"weight", parameter}}});
  ::testing::internal::CaptureStderr();
  for (int step = 0; step < 3; ++step) {
    parameter.mutable_grad() = torch::full_like(parameter, 1e37 / size());
    EXPECT_EQ(ErrorText([&] { optimizer.step(); }), "nothing was thrown");
    optimizer.zero_grad();
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(optimizer.skipped_steps(), 0);
  EXPECT_FALSE(parameter.eq(0).any().item<bool>());
}

}  // namespace
}  // namespace hvdlite
