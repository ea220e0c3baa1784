// Gradients with NaN or infinity, for each value of
// HVDLITE_NONFINITE_GRADIENTS.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <cmath>
#include <functional>
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

// The outcome of training with one gradient that is not finite.
struct Outcome {
  std::string log;
  std::string error = "nothing was thrown";
  int64_t skipped = 0;
};

// Trains four steps. `backward` makes that gradient in step `bad_step`.
Outcome Train(DistributedOptimizer& optimizer, int bad_step,
              const std::function<void(int step)>& backward,
              bool with_closure = false) {
  Outcome outcome;
  ::testing::internal::CaptureStderr();
  for (int step = 1; step <= 4; ++step) {
    const std::string error = ErrorText([&] {
      if (with_closure) {
        optimizer.step([&] {
          optimizer.zero_grad();
          backward(step);
          return torch::ones({});
        });
      } else {
        optimizer.zero_grad();
        backward(step);
        optimizer.step();
      }
    });
    if (step == bad_step) {
      outcome.error = error;
    } else {
      EXPECT_EQ(error, "nothing was thrown") << "in step " << step;
    }
  }
  outcome.log = ::testing::internal::GetCapturedStderr();
  outcome.skipped = optimizer.skipped_steps();
  return outcome;
}

// Checks the outcome if the last rank's gradient of `parameter` is not finite.
void ExpectTreatedAsAskedFor(const Outcome& outcome,
                             const std::string& parameter, int bad_step,
                             const std::vector<torch::Tensor>& parameters,
                             bool is_sparse = false) {
  const std::string step = "step " + std::to_string(bad_step);
  const std::string found = "has NaN or infinity in " + step;
  const std::string problem =
      "the gradient of parameter '" + parameter + "' " + found;
  const bool tells = Mode() == "warn" || Mode() == "skip";
  EXPECT_EQ(outcome.log.find(problem + ", computed by this rank") !=
                std::string::npos,
            tells && IsLast())
      << outcome.log;
  if (rank() == 0 && Mode() == "skip") {
    EXPECT_THAT(outcome.log, HasSubstr("all ranks skip " + step));
  }
  if (Mode() == "error") {
    EXPECT_THAT(outcome.error,
                AllOf(HasSubstr(is_sparse ? found : problem),
                      HasSubstr("rank " + std::to_string(size() - 1))));
  } else {
    EXPECT_EQ(outcome.error, "nothing was thrown");
  }
  EXPECT_EQ(outcome.error, broadcast_object(outcome.error, 0));
  EXPECT_EQ(outcome.skipped, Mode() == "skip" ? 1 : 0);
  const bool stays_finite = Mode() == "skip" || Mode() == "error";
  bool finite = true;
  for (const torch::Tensor& one : parameters) {
    finite = finite && one.isfinite().all().item<bool>();
    // NaN is not equal to anything.
    if (!stays_finite) continue;
    EXPECT_TRUE(broadcast(one.detach(), 0).equal(one)) << "on all ranks";
  }
  EXPECT_EQ(finite, stays_finite);
}

class NonfiniteGradientsTest : public EveryWayTest {};

INSTANTIATE_TEST_SUITE_P(, NonfiniteGradientsTest, EveryWay());

TEST_P(NonfiniteGradientsTest, NanOfOneRankIsReportedAndTreatedAsConfigured) {
  for (const bool with_closure : {false, true}) {
    SCOPED_TRACE(with_closure ? "with closures" : "without closures");
    Net net = MakeNet();
    DistributedOptimizer optimizer = Distribute(
        net,
        [](Net& model) {
          return std::make_unique<torch::optim::Adam>(model->parameters(),
                                                      1e-3);
        },
        options());
    std::vector<torch::Tensor> before;
    const auto backward = [&](int step) {
      if (step == 3 && (Mode() == "skip" || Mode() == "error")) {
        for (size_t i = 0; i < before.size(); ++i) {
          EXPECT_TRUE(net->parameters()[i].equal(before[i])) << i;
        }
      }
      before.clear();
      for (const torch::Tensor& one : net->parameters()) {
        before.push_back(one.detach().clone());
      }
      if (step != 2) {
        Loss(net, Shard(WholeBatch(step))).backward();
        return;
      }
      const double factor = IsLast() ? std::nan("") : 1;
      (net->linear->bias[2] * factor + net->convolution->weight.sum())
          .backward();
    };
    ExpectTreatedAsAskedFor(Train(optimizer, 2, backward, with_closure),
                            "linear.bias", 2, net->parameters());
  }
}

TEST(OtherNonfiniteGradientsTest, OverflowingSumSkipsTheStep) {
  if (Mode() != "skip") GTEST_SKIP() << "only mode skip checks the result";
  torch::Tensor parameter = torch::ones({3}, torch::kHalf).requires_grad_();
  DistributedOptimizer optimizer =
      DistributeSgd({{"weight", parameter}},
                    DistributedOptimizerOptions().op(ReduceOp::Sum), 1e-5);
  const auto step = [&](double gradient) {
    parameter.mutable_grad() = torch::full_like(parameter, gradient);
    optimizer.step();
    optimizer.zero_grad();
  };
  // The scale of a loss is halved until the sum of all ranks is finite.
  double gradient = 60'000;
  int64_t skipped = 0;
  while (true) {
    step(gradient);
    if (optimizer.skipped_steps() == skipped) break;
    EXPECT_TRUE(AllEqual(parameter, 1));
    skipped = optimizer.skipped_steps();
    gradient /= 2;
  }
  EXPECT_EQ(skipped, size() == 1 ? 0 : size() == 2 ? 1 : 2);
  EXPECT_FALSE(parameter.eq(1).any().item<bool>());
}

TEST(OtherNonfiniteGradientsTest, SparseGradientsAreChecked) {
  torch::manual_seed(3);
  torch::nn::Embedding net(torch::nn::EmbeddingOptions(9, 2).sparse(true));
  DistributedOptimizer optimizer =
      DistributeSgd(net->named_parameters(), {}, 0.1);
  const auto backward = [&](int step) {
    const double factor =
        step == 3 && IsLast() ? std::numeric_limits<double>::infinity() : 1;
    (net->forward(torch::tensor({1, 2})).sum() * factor).backward();
  };
  ExpectTreatedAsAskedFor(Train(optimizer, 3, backward), "weight", 3,
                          net->parameters(), /*is_sparse=*/true);
}

TEST(OtherNonfiniteGradientsTest, BothPartsOfComplexGradientsAreChecked) {
  // Large gradients are checked in another way.
  for (const int64_t count : {3, 1 << 18}) {
    for (const bool imaginary : {false, true}) {
      SCOPED_TRACE(::testing::Message() << (imaginary ? "imaginary" : "real")
                                        << " part of " << count);
      torch::Tensor parameter =
          torch::zeros({count}, torch::kComplexFloat).requires_grad_();
      DistributedOptimizer optimizer = DistributeSgd({{"weight", parameter}});
      const auto backward = [&](int step) {
        parameter.mutable_grad() = torch::ones_like(parameter);
        if (step == 2 && IsLast()) {
          torch::view_as_real(parameter.mutable_grad())[1][imaginary ? 1 : 0] =
              -std::numeric_limits<double>::infinity();
        }
      };
      ExpectTreatedAsAskedFor(Train(optimizer, 2, backward), "weight", 2,
                              {parameter});
    }
  }
}

TEST(OtherNonfiniteGradientsTest, LargeFiniteGradientsAreAccepted) {
  // The check of large gradients computes their sum, which is infinite here.
  torch::Tensor parameter = torch::zeros({1 << 19}).requires_grad_();
  DistributedOptimizer optimizer =
      DistributeSgd({{"weight", parameter}}, {}, 1e-30);
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
