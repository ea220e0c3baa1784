// Parameters whose data is replaced between synchronize(), backward() and
// step(). Afterwards autograd may accumulate their gradients with a new node.
// On any number of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>

#include "tests/torch_plugin/error_text.h"
#include "tests/torch_plugin/training_models.h"

namespace hvdlite {
namespace {

using Options = DistributedOptimizerOptions;

void SetType(torch::Tensor& parameter, torch::ScalarType type) {
  parameter.set_data(parameter.detach().to(type));
}

// Replaces the data (and possibly more) of a parameter of float64.
struct Change {
  const char* name;
  std::function<void(torch::Tensor&)> make;
};

const Change kChanges[] = {
    {"ToFloat", [](torch::Tensor& one) { SetType(one, torch::kFloat); }},
    {"ToFloatAndBack",
     [](torch::Tensor& one) {
       SetType(one, torch::kFloat);
       SetType(one, torch::kDouble);
     }},
    {"NewDataOfTheSameType",
     [](torch::Tensor& one) { one.set_data(one.detach().clone()); }},
    {"FrozenForAMoment",
     [](torch::Tensor& one) {
       one.requires_grad_(false);
       one.requires_grad_(true);
     }},
    {"FrozenWhileItsTypeChanges",
     [](torch::Tensor& one) {
       one.requires_grad_(false);
       SetType(one, torch::kFloat);
       one.requires_grad_(true);
     }},
};

// The change, the op, the groups, and whether gradients are views.
class ChangedParametersTest : public ::testing::TestWithParam<
                                  std::tuple<Change, ReduceOp, int64_t, bool>> {
 protected:
  void Make(torch::Tensor& parameter) const {
    std::get<0>(GetParam()).make(parameter);
  }
  Options options() const {
    return Options()
        .op(std::get<1>(GetParam()))
        .groups(std::get<2>(GetParam()))
        .gradient_as_fusion_view(std::get<3>(GetParam()));
  }
  // The expected result if rank r contributes r + 1.
  double Reduced() const {
    return options().op() == ReduceOp::Sum ? SumOfRanks()
                                           : SumOfRanks() / size();
  }
  // The expected result if every rank contributes `value`.
  double ReducedOf(double value) const {
    return options().op() == ReduceOp::Sum ? value * size() : value;
  }

  DistributedOptimizer Wrap() const {
    return DistributeSgd({{"changed", changed}, {"other", other}}, options());
  }

  static void ExpectEverywhere(const torch::Tensor& tensor, double value) {
    EXPECT_TRUE(AllEqual(tensor, value))
        << "rank " << rank() << " has " << tensor << " instead of " << value;
  }

  // Small numbers, so that no type rounds.
  torch::Tensor changed = torch::ones({3}, torch::kDouble).requires_grad_();
  torch::Tensor other = torch::ones({5}).requires_grad_();
};

INSTANTIATE_TEST_SUITE_P(
    , ChangedParametersTest,
    ::testing::Combine(::testing::ValuesIn(kChanges),
                       ::testing::Values(ReduceOp::Average, ReduceOp::Sum),
                       ::testing::Values(0, 1), ::testing::Bool()),
    [](const auto& info) {
      return std::string(std::get<0>(info.param).name) +
             (std::get<1>(info.param) == ReduceOp::Sum ? "Sum" : "Average") +
             (std::get<2>(info.param) == 0 ? "EachByItself" : "InAGroup") +
             (std::get<3>(info.param) ? "AsViews" : "");
    });

TEST_P(ChangedParametersTest, GradientAfterSynchronizeIsReducedByStep) {
  DistributedOptimizer optimizer = Wrap();
  Backward({changed, other});
  optimizer.synchronize();
  Make(changed);
  Backward({changed});
  optimizer.step();
  const double gradient = Reduced() + ReducedOf(Reduced());
  ExpectEverywhere(changed.grad(), gradient);
  ExpectEverywhere(changed, 1 - gradient);
  ExpectEverywhere(other, 1 - Reduced());
}

TEST_P(ChangedParametersTest, GradientAfterStepIsReducedByTheNext) {
  DistributedOptimizer optimizer = Wrap();
  double expected = 1;
  for (int step = 0; step < 3; ++step) {
    if (step == 1) Make(changed);
    Backward({changed, other});
    optimizer.step();
    optimizer.zero_grad(/*set_to_none=*/step % 2 == 0);
    expected -= Reduced();
    ExpectEverywhere(changed, expected);
    ExpectEverywhere(other, expected);
  }
}

// The change may come after step() or after synchronize().
TEST_P(ChangedParametersTest, SecondBackwardBeforeStepIsRefused) {
  const auto second_is_refused = [&] {
    Backward({changed});
    EXPECT_NE(ErrorText([&] { changed.sum().backward(); }),
              "nothing was thrown");
  };
  DistributedOptimizer optimizer = Wrap();
  Make(changed);
  second_is_refused();
  optimizer.step();
  second_is_refused();
  optimizer.synchronize();
  Make(changed);
  second_is_refused();
  optimizer.zero_grad();
  second_is_refused();
}

TEST_P(ChangedParametersTest, GradientOfAnEarlierForwardIsReduced) {
  DistributedOptimizer optimizer = Wrap();
  optimizer.synchronize();
  const torch::Tensor before = changed.sum();
  Make(changed);
  const torch::Tensor after = changed.sum();
  optimizer.synchronize();
  Backward({before});
  optimizer.step();
  ExpectEverywhere(changed, 1 - Reduced());
  optimizer.zero_grad();
  optimizer.synchronize();
  Backward({after});
  optimizer.step();
  ExpectEverywhere(changed, 1 - 2 * Reduced());
}

TEST_P(ChangedParametersTest, GradientBeforeTheChangeIsReduced) {
  DistributedOptimizer optimizer = Wrap();
  Backward({changed, other});
  Make(changed);
  optimizer.step();
  ExpectEverywhere(changed, 1 - Reduced());
  ExpectEverywhere(other, 1 - Reduced());
}

// The gradient has not changed, so a sum must not count it again.
TEST_P(ChangedParametersTest, ChangeAloneDoesNotReduceAResultAgain) {
  DistributedOptimizer optimizer = Wrap();
  Backward({changed, other});
  optimizer.synchronize();
  Make(changed);
  optimizer.step();
  ExpectEverywhere(changed, 1 - Reduced());
}

TEST(ParametersOfAnotherShapeTest, TrainAfterTheNextZeroGrad) {
  for (const bool views : {false, true}) {
    torch::Tensor weight = torch::ones({3}).requires_grad_();
    DistributedOptimizer optimizer = DistributeSgd(
        {{"weight", weight}},
        Options().op(ReduceOp::Sum).gradient_as_fusion_view(views));
    for (const int64_t rows : {3, 7, 2}) {
      weight.set_data(torch::ones({rows}));
      optimizer.zero_grad();
      Backward({weight});
      optimizer.step();
      EXPECT_TRUE(AllEqual(weight, 1 - SumOfRanks())) << rows << " rows";
    }
  }
}

// The parameter was frozen when the optimizer was made.
TEST(ThawedParametersTest, GradientAfterSynchronizeIsReducedByStep) {
  for (const ReduceOp op : {ReduceOp::Average, ReduceOp::Sum}) {
    torch::Tensor thawed = torch::ones({3});
    torch::Tensor other = torch::ones({5}).requires_grad_();
    DistributedOptimizer optimizer =
        DistributeSgd({{"thawed", thawed}, {"other", other}}, Options().op(op));
    EXPECT_FALSE(thawed.requires_grad());
    other.sum().backward();
    optimizer.synchronize();
    EXPECT_FALSE(thawed.requires_grad());
    thawed.requires_grad_();
    Backward({thawed});
    optimizer.step();
    const double gradient = SumOfRanks() / (op == ReduceOp::Sum ? 1 : size());
    EXPECT_TRUE(AllEqual(thawed, 1 - gradient))
        << "rank " << rank() << " has " << thawed;
  }
}

TEST(ThawedParametersTest, IntegersThatGetGradientsAreRefused) {
  torch::Tensor number = torch::ones({3}, torch::kLong);
  DistributedOptimizer optimizer = DistributeSgd({{"number", number}});
  optimizer.synchronize();
  SetType(number, torch::kFloat);
  number.requires_grad_();
  Backward({number});
  EXPECT_THAT(ErrorText([&] { optimizer.step(); }),
              ::testing::HasSubstr("floating-point"));
  EXPECT_TRUE(AllEqual(number, 1));
}

class ChangedModelTest : public EveryWayTest {};

INSTANTIATE_TEST_SUITE_P(, ChangedModelTest, EveryWay());

// Changes a whole model twice, with the optimizer's calls in any order.
TEST_P(ChangedModelTest, TrainsAsOneProcess) {
  Net net = MakeNet();
  Net alone = MakeNet();
  DistributedOptimizer optimizer = Distribute(net, MakeSgd, options());
  const auto optimizer_alone = MakeSgd(alone);
  const torch::ScalarType types[] = {torch::kDouble, torch::kFloat,
                                     torch::kFloat,  torch::kDouble,
                                     torch::kFloat,  torch::kDouble};
  for (int step = 0; step < 6; ++step) {
    const torch::ScalarType type = types[step];
    const auto train = [&](Net& model, const Batch& batch) {
      Loss(model, {batch.input.to(type), batch.target.to(type)}).backward();
    };
    net->to(type);
    alone->to(type);
    if (step % 3 == 0) {
      optimizer.zero_grad();
      DropGradients(*alone);
    }
    train(net, Shard(WholeBatch(step)));
    train(alone, WholeBatch(step));
    if (step % 2 == 1) optimizer.synchronize();
    optimizer.step();
    optimizer_alone->step();
    ExpectSameOnAllRanks(*net);
    ExpectClose(*net, *alone, 1e-4);
  }
}

}  // namespace
}  // namespace hvdlite
