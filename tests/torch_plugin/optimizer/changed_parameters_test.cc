// Parameters whose data is replaced between synchronize(), backward() and
// step(), after which autograd may accumulate their gradients anew; on any
// number of ranks.
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
#include "tests/torch_plugin/small_net.h"

namespace hvdlite {
namespace {

using Options = DistributedOptimizerOptions;

void SetType(torch::Tensor& parameter, torch::ScalarType type) {
  parameter.set_data(parameter.detach().to(type));
}

// Replaces the data, or more, of a parameter of float64.
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

// The change, op, groups, and whether gradients are views.
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
  // Where rank r contributes r + 1.
  double Reduced() const {
    const double sum = size() * (size() + 1) / 2;
    return options().op() == ReduceOp::Sum ? sum : sum / size();
  }
  // Where every rank contributes `value`.
  double ReducedOf(double value) const {
    return options().op() == ReduceOp::Sum ? value * size() : value;
  }

  DistributedOptimizer Wrap() const {
    torch::OrderedDict<std::string, torch::Tensor> parameters;
    parameters.insert("changed", changed);
    parameters.insert("other", other);
    return DistributedOptimizer(
        std::make_unique<torch::optim::SGD>(parameters.values(), 1.0),
        parameters, options());
  }

  static void Backward(const torch::Tensor& sum) {
    (sum * (rank() + 1)).backward();
  }

  static void ExpectEverywhere(const torch::Tensor& tensor, double value) {
    EXPECT_TRUE(tensor.eq(value).all().item<bool>())
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
  Backward(changed.sum() + other.sum());
  optimizer.synchronize();
  Make(changed);
  Backward(changed.sum());
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
    Backward(changed.sum() + other.sum());
    optimizer.step();
    optimizer.zero_grad(/*set_to_none=*/step % 2 == 0);
    expected -= Reduced();
    ExpectEverywhere(changed, expected);
    ExpectEverywhere(other, expected);
  }
}

// Whichever of them the change comes after.
TEST_P(ChangedParametersTest, SecondBackwardBeforeStepIsRefused) {
  const auto second_is_refused = [&] {
    Backward(changed.sum());
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
  Backward(before);
  optimizer.step();
  ExpectEverywhere(changed, 1 - Reduced());
  optimizer.zero_grad();
  optimizer.synchronize();
  Backward(after);
  optimizer.step();
  ExpectEverywhere(changed, 1 - 2 * Reduced());
}

TEST_P(ChangedParametersTest, GradientBeforeTheChangeIsReduced) {
  DistributedOptimizer optimizer = Wrap();
  Backward(changed.sum() + other.sum());
  Make(changed);
  optimizer.step();
  ExpectEverywhere(changed, 1 - Reduced());
  ExpectEverywhere(other, 1 - Reduced());
}

// The gradient is what it was: a sum does not count it again.
TEST_P(ChangedParametersTest, ResultIsNotReducedAgainForTheChangeAlone) {
  DistributedOptimizer optimizer = Wrap();
  Backward(changed.sum() + other.sum());
  optimizer.synchronize();
  Make(changed);
  optimizer.step();
  ExpectEverywhere(changed, 1 - Reduced());
}

TEST(ParametersOfAnotherShapeTest, AreTrainedFromTheNextZeroGradOn) {
  for (const bool views : {false, true}) {
    torch::Tensor weight = torch::ones({3}).requires_grad_();
    torch::OrderedDict<std::string, torch::Tensor> parameters;
    parameters.insert("weight", weight);
    DistributedOptimizer optimizer(
        std::make_unique<torch::optim::SGD>(parameters.values(), 1.0),
        parameters, Options().op(ReduceOp::Sum).gradient_as_fusion_view(views));
    for (const int64_t rows : {3, 7, 2}) {
      weight.set_data(torch::ones({rows}));
      optimizer.zero_grad();
      (weight.sum() * (rank() + 1)).backward();
      optimizer.step();
      const int sum = size() * (size() + 1) / 2;
      EXPECT_TRUE(weight.eq(1 - sum).all().item<bool>()) << rows << " rows";
    }
  }
}

// Frozen when the optimizer was made.
TEST(ThawedParametersTest, GradientAfterSynchronizeIsReducedByStep) {
  for (const ReduceOp op : {ReduceOp::Average, ReduceOp::Sum}) {
    torch::Tensor thawed = torch::ones({3});
    torch::Tensor other = torch::ones({5}).requires_grad_();
    torch::OrderedDict<std::string, torch::Tensor> parameters;
    parameters.insert("thawed", thawed);
    parameters.insert("other", other);
    DistributedOptimizer optimizer(
        std::make_unique<torch::optim::SGD>(parameters.values(), 1.0),
        parameters, Options().op(op));
    EXPECT_FALSE(thawed.requires_grad());
    other.sum().backward();
    optimizer.synchronize();
    EXPECT_FALSE(thawed.requires_grad());
    thawed.requires_grad_();
    (thawed.sum() * (rank() + 1)).backward();
    optimizer.step();
    const double sum = size() * (size() + 1) / 2;
    const double gradient = op == ReduceOp::Sum ? sum : sum / size();
    EXPECT_TRUE(thawed.eq(1 - gradient).all().item<bool>())
        << "rank " << rank() << " has " << thawed;
  }
}

TEST(ThawedParametersTest, IntegersThatGetGradientsAreRefused) {
  torch::Tensor number = torch::ones({3}, torch::kLong);
  torch::OrderedDict<std::string, torch::Tensor> parameters;
  parameters.insert("number", number);
  DistributedOptimizer optimizer(
      std::make_unique<torch::optim::SGD>(parameters.values(), 1.0),
      parameters);
  optimizer.synchronize();
  SetType(number, torch::kFloat);
  number.requires_grad_();
  (number.sum() * (rank() + 1)).backward();
  EXPECT_THAT(ErrorText([&] { optimizer.step(); }),
              ::testing::HasSubstr("floating-point"));
  EXPECT_TRUE(number.eq(1).all().item<bool>());
}

// A whole model, forth and back, with the optimizer's calls in any order.
TEST(ChangedModelTest, TrainsAsOneProcess) {
  for (const int64_t groups : {0, 1, 2}) {
    for (const bool views : {false, true}) {
      Net net = MakeNet();
      Net alone = MakeNet();
      DistributedOptimizer optimizer =
          Distribute(net, MakeSgd,
                     Options().groups(groups).gradient_as_fusion_view(views));
      const auto optimizer_alone = MakeSgd(alone);
      const auto train = [](Net& model, Batch batch) {
        const torch::ScalarType type = model->linear->weight.scalar_type();
        Loss(model, {batch.input.to(type), batch.target.to(type)}).backward();
      };
      const torch::ScalarType types[] = {torch::kDouble, torch::kFloat,
                                         torch::kFloat,  torch::kDouble,
                                         torch::kFloat,  torch::kDouble};
      int step = 0;
      for (const torch::ScalarType type : types) {
        net->to(type);
        alone->to(type);
        if (step % 3 == 0) optimizer.zero_grad();
        if (step % 3 == 0) {
          for (torch::Tensor& one : alone->parameters()) {
            one.mutable_grad().reset();
          }
        }
        train(net, Shard(WholeBatch(step)));
        train(alone, WholeBatch(step));
        if (step % 2 == 1) optimizer.synchronize();
        optimizer.step();
        optimizer_alone->step();
        ExpectSameOnAllRanks(*net);
        ExpectClose(*net, *alone, 1e-4);
        ++step;
      }
    }
  }
}

}  // namespace
}  // namespace hvdlite
