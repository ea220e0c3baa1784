// SyncBatchNorm on shards of a batch against LibTorch's BatchNorm on the whole
// batch, on any number of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <cmath>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/torch_plugin/error_text.h"

namespace hvdlite {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using torch::nn::BatchNormOptions;

constexpr int64_t kChannels = 3;

// Shards differ in length; of three or more ranks rank 1's is empty.
int64_t RowsOf(int rank) { return rank == 1 && size() > 2 ? 0 : 2 + rank; }

torch::Tensor Mine(const torch::Tensor& whole) {
  int64_t first = 0;
  for (int i = 0; i < rank(); ++i) first += RowsOf(i);
  return whole.slice(0, first, first + RowsOf(rank()));
}

int64_t AllRows() {
  int64_t rows = 0;
  for (int i = 0; i < size(); ++i) rows += RowsOf(i);
  return rows;
}

// The same on every rank.
torch::Tensor Random(std::vector<int64_t> shape, uint64_t seed,
                     at::ScalarType type = torch::kDouble) {
  torch::manual_seed(seed);
  return (torch::randn(shape, torch::kDouble) * 3 + 2).to(type);
}

std::vector<int64_t> ShapeOf(int64_t dimensions) {
  std::vector<int64_t> shape = {AllRows(), kChannels};
  while (static_cast<int64_t>(shape.size()) < dimensions) shape.push_back(4);
  return shape;
}

// LibTorch's for inputs of any number of dimensions.
struct Reference {
  explicit Reference(const BatchNormOptions& options)
      : of_rows(options), of_images(options), of_volumes(options) {}

  torch::Tensor forward(const torch::Tensor& input) {
    if (input.dim() <= 3) return of_rows->forward(input);
    return input.dim() == 4 ? of_images->forward(input)
                            : of_volumes->forward(input);
  }
  torch::OrderedDict<std::string, torch::Tensor> Buffers(int64_t dimensions) {
    if (dimensions <= 3) return of_rows->named_buffers();
    return dimensions == 4 ? of_images->named_buffers()
                           : of_volumes->named_buffers();
  }
  torch::OrderedDict<std::string, torch::Tensor> Parameters(
      int64_t dimensions) {
    if (dimensions <= 3) return of_rows->named_parameters();
    return dimensions == 4 ? of_images->named_parameters()
                           : of_volumes->named_parameters();
  }
  void To(at::ScalarType type) {
    of_rows->to(type);
    of_images->to(type);
    of_volumes->to(type);
  }

  torch::nn::BatchNorm1d of_rows;
  torch::nn::BatchNorm2d of_images;
  torch::nn::BatchNorm3d of_volumes;
};

#define EXPECT_CLOSE(actual, expected, tolerance)                         \
  EXPECT_TRUE(torch::allclose((actual).to(torch::kDouble),                \
                              (expected).to(torch::kDouble), (tolerance), \
                              (tolerance)))                               \
      << #actual << " differs by "                                        \
      << ((actual) - (expected)).abs().max().to(torch::kDouble).item<double>()

struct Case {
  BatchNormOptions options = BatchNormOptions(kChannels);
  int64_t dimensions = 4;
  at::ScalarType type = torch::kDouble;
  bool channels_last = false;
  bool training = true;
  bool input_requires_gradient = true;
  double tolerance = 1e-10;
};

// Two steps: outputs, gradients and running statistics. LibTorch computes
// 16-bit inputs in float32.
void ExpectAsOneProcess(const Case& c) {
  SyncBatchNorm module(c.options);
  Reference reference(c.options);
  const bool is_16_bit = c.type == torch::kHalf || c.type == torch::kBFloat16;
  const at::ScalarType reference_type = is_16_bit ? torch::kFloat : c.type;
  if (!is_16_bit) module->to(c.type);
  reference.To(reference_type);
  auto parameters = reference.Parameters(c.dimensions);
  for (auto& item : module->named_parameters()) {
    const torch::NoGradGuard no_grad;
    const torch::Tensor values = Random({kChannels}, 5);
    item.value().copy_(values);
    parameters[item.key()].copy_(values);
  }
  if (!c.training) {
    module->eval();
    reference.of_rows->eval();
    reference.of_images->eval();
    reference.of_volumes->eval();
  }
  for (uint64_t step = 0; step < 2; ++step) {
    torch::Tensor whole = Random(ShapeOf(c.dimensions), step, c.type);
    const torch::Tensor weights =
        Random(ShapeOf(c.dimensions), 10 + step, c.type);
    if (c.channels_last) {
      whole = whole.contiguous(torch::MemoryFormat::ChannelsLast);
    }
    torch::Tensor input =
        Mine(whole).detach().clone().requires_grad_(c.input_requires_gradient);
    whole = whole.to(reference_type).detach().requires_grad_();
    const torch::Tensor output = module->forward(input);
    const torch::Tensor expected = reference.forward(whole);
    EXPECT_EQ(output.scalar_type(), c.type);
    EXPECT_EQ(output.sizes(), input.sizes());
    if (input.numel() > 0) {
      EXPECT_CLOSE(output, Mine(expected), c.tolerance);
    }
    module->zero_grad();
    (output * Mine(weights)).sum().backward();
    for (auto& item : parameters) item.value().mutable_grad().reset();
    (expected * weights).sum().backward();
    ASSERT_EQ(input.grad().defined(), c.input_requires_gradient);
    if (c.input_requires_gradient) {
      EXPECT_EQ(input.grad().scalar_type(), c.type);
    }
    if (c.input_requires_gradient && input.numel() > 0) {
      EXPECT_CLOSE(input.grad(), Mine(whole.grad()), c.tolerance);
    }
    for (const auto& item : module->named_parameters()) {
      EXPECT_CLOSE(
          allreduce(item.value().grad(), AllreduceOptions().op(ReduceOp::Sum)),
          parameters[item.key()].grad(), 10 * c.tolerance);
    }
  }
  auto buffers = reference.Buffers(c.dimensions);
  EXPECT_EQ(module->named_buffers().size(), buffers.size());
  for (const auto& item : module->named_buffers()) {
    if (!item.value().defined()) {
      EXPECT_FALSE(buffers[item.key()].defined());
      continue;
    }
    EXPECT_CLOSE(item.value(), buffers[item.key()], c.tolerance);
  }
}

TEST(SyncBatchNormTest, InputsOfAnyNumberOfDimensions) {
  for (int64_t dimensions = 2; dimensions <= 5; ++dimensions) {
    ExpectAsOneProcess({.dimensions = dimensions});
  }
}

TEST(SyncBatchNormTest, ChannelsLast) {
  ExpectAsOneProcess({.channels_last = true});
  ExpectAsOneProcess(
      {.type = torch::kFloat, .channels_last = true, .tolerance = 1e-4});
}

TEST(SyncBatchNormTest, InputWithoutGradient) {
  ExpectAsOneProcess({.input_requires_gradient = false});
}

TEST(SyncBatchNormTest, GradientsInEvaluation) {
  ExpectAsOneProcess({.training = false});
}

TEST(SyncBatchNormTest, Float32) {
  ExpectAsOneProcess({.type = torch::kFloat, .tolerance = 1e-4});
}

TEST(SyncBatchNormTest, SixteenBitFloats) {
  ExpectAsOneProcess({.type = torch::kBFloat16, .tolerance = 5e-2});
  ExpectAsOneProcess({.type = torch::kHalf, .tolerance = 1e-2});
}

TEST(SyncBatchNormTest, ModuleOfSixteenBitFloats) {
  SyncBatchNorm module(kChannels);
  module->to(torch::kBFloat16);
  torch::Tensor input =
      Mine(Random(ShapeOf(4), 1, torch::kBFloat16)).clone().requires_grad_();
  module->forward(input).sum().backward();
  EXPECT_EQ(module->weight.grad().scalar_type(), torch::kBFloat16);
  EXPECT_EQ(module->running_mean.scalar_type(), torch::kBFloat16);
  EXPECT_NEAR(module->running_mean.mean().item<double>(), 0.2, 0.1);
}

TEST(SyncBatchNormTest, CumulativeAverageWithoutMomentum) {
  ExpectAsOneProcess(
      {.options = BatchNormOptions(kChannels).momentum(torch::nullopt)});
}

TEST(SyncBatchNormTest, WithoutWeightAndBias) {
  ExpectAsOneProcess({.options = BatchNormOptions(kChannels).affine(false)});
}

TEST(SyncBatchNormTest, WithoutRunningStatistics) {
  for (const bool training : {true, false}) {
    ExpectAsOneProcess(
        {.options = BatchNormOptions(kChannels).track_running_stats(false),
         .training = training});
  }
}

TEST(SyncBatchNormTest, EvaluationUsesRunningStatisticsAndIsNotCollective) {
  SyncBatchNorm module(kChannels);
  torch::nn::BatchNorm2d reference(kChannels);
  module->eval();
  reference->eval();
  for (torch::Tensor& mean : std::vector<torch::Tensor>{
           module->running_mean, reference->running_mean}) {
    mean.fill_(2);
  }
  if (rank() == 0) {
    const torch::Tensor input = Random({2, kChannels, 4, 4}, 0, torch::kFloat);
    EXPECT_TRUE(module->forward(input).equal(reference->forward(input)));
    EXPECT_EQ(module->forward(input.to(torch::kHalf)).scalar_type(),
              torch::kHalf);
  }
  EXPECT_EQ(module->num_batches_tracked.item<int64_t>(), 0);
}

// The naive E[x^2] - E[x]^2 has no correct digit here.
TEST(SyncBatchNormTest, VarianceIsStableFarFromZero) {
  SyncBatchNorm module(BatchNormOptions(1).momentum(1.0));
  torch::manual_seed(4);
  const torch::Tensor whole = torch::randn({AllRows(), 1, 100}) + 1e4;
  module->forward(Mine(whole));
  const double expected = whole.to(torch::kDouble).var().item<double>();
  EXPECT_NEAR(module->running_var.item<double>(), expected, expected * 1e-4);
}

// Of the sum of all ranks' losses, for each element of each rank's input.
TEST(SyncBatchNormTest, GradientIsThatOfTheSumOfAllLosses) {
  SyncBatchNorm module(
      BatchNormOptions(kChannels).track_running_stats(false).affine(false));
  module->to(torch::kDouble);
  torch::Tensor input = Mine(Random(ShapeOf(2), 6)).clone().requires_grad_();
  const torch::Tensor weights = Mine(Random(ShapeOf(2), 7));
  const auto loss = [&](const torch::Tensor& values) {
    return (module->forward(values).pow(3) * weights).sum();
  };
  loss(input).backward();
  const auto total = [&](const torch::Tensor& values) {
    const torch::NoGradGuard no_grad;
    return allreduce(loss(values), AllreduceOptions().op(ReduceOp::Sum))
        .item<double>();
  };
  constexpr double kStep = 1e-6;
  for (int changed = 0; changed < size(); ++changed) {
    for (int64_t i = 0; i < RowsOf(changed) * kChannels; ++i) {
      torch::Tensor more = input.detach().clone();
      torch::Tensor less = input.detach().clone();
      if (changed == rank()) {
        more.view(-1)[i] += kStep;
        less.view(-1)[i] -= kStep;
      }
      const double slope = (total(more) - total(less)) / (2 * kStep);
      if (changed == rank()) {
        EXPECT_NEAR(input.grad().view(-1)[i].item<double>(), slope,
                    1e-6 * (1 + std::abs(slope)));
      }
    }
  }
}

TEST(SyncBatchNormTest, NoRowsOnAnyRank) {
  SyncBatchNorm module(kChannels);
  const torch::Tensor output = module->forward(torch::zeros({0, kChannels, 2}));
  EXPECT_EQ(output.numel(), 0);
  EXPECT_TRUE(module->running_var.eq(1).all().item<bool>());
}

TEST(SyncBatchNormTest, SingleValueOverAllRanksIsTheSameErrorOnAll) {
  SyncBatchNorm module(kChannels);
  const torch::Tensor input = torch::ones({rank() == 0 ? 1 : 0, kChannels});
  const std::string text = ErrorText([&] { module->forward(input); });
  EXPECT_THAT(text, HasSubstr("single value per channel"));
  EXPECT_EQ(text, broadcast_object(text, 0));
  EXPECT_EQ(module->num_batches_tracked.item<int64_t>(), 0);
}

TEST(SyncBatchNormTest, GradientOnSomeRanksOnlyIsTheSameErrorOnAll) {
  if (size() == 1) return;
  SyncBatchNorm module(kChannels);
  torch::Tensor input = torch::rand({3, kChannels}).requires_grad_(rank() == 0);
  const std::string text = ErrorText([&] { module->forward(input); });
  EXPECT_THAT(text, HasSubstr("require a gradient"));
  EXPECT_EQ(text, broadcast_object(text, 0));
}

TEST(SyncBatchNormTest, InputsThatDoNotFitAreRefused) {
  SyncBatchNorm module(kChannels);
  EXPECT_THAT(ErrorText([&] { module->forward(torch::zeros({4})); }),
              AllOf(HasSubstr("[4]"), HasSubstr("[N, 3, ...]")));
  EXPECT_THAT(ErrorText([&] {
                module->forward(torch::zeros({4, 2}));
              }),
              HasSubstr("[4, 2]"));
  EXPECT_THAT(ErrorText([&] {
                module->forward(torch::zeros({4, 3}, torch::kLong));
              }),
              HasSubstr("is not supported"));
  EXPECT_THAT(ErrorText([&] { module->forward(torch::Tensor()); }),
              HasSubstr("undefined"));
}

TEST(SyncBatchNormTest, SecondDerivativeIsRefused) {
  SyncBatchNorm module(kChannels);
  const torch::Tensor input = torch::rand({3, kChannels}).requires_grad_();
  const torch::Tensor loss = module->forward(input).pow(2).sum();
  EXPECT_THAT(ErrorText([&] {
                torch::autograd::grad({loss}, {input}, {},
                                      /*retain_graph=*/true,
                                      /*create_graph=*/true);
              }),
              HasSubstr("second derivative"));
}

TEST(SyncBatchNormTest, InAProcessSet) {
  const ProcessSet first = add_process_set({0});
  if (first.included()) {
    SyncBatchNorm module(BatchNormOptions(kChannels), first);
    torch::nn::BatchNorm1d reference(kChannels);
    torch::Tensor input =
        Random({5, kChannels}, 2, torch::kFloat).requires_grad_();
    torch::Tensor same = input.detach().clone().requires_grad_();
    module->forward(input).pow(2).sum().backward();
    reference->forward(same).pow(2).sum().backward();
    EXPECT_CLOSE(input.grad(), same.grad(), 1e-4);
    EXPECT_CLOSE(module->running_var, reference->running_var, 1e-5);
  }
  remove_process_set(first);
}

TEST(SyncBatchNormTest, ArchivesFitBothWays) {
  torch::nn::BatchNorm2d usual(kChannels);
  usual->forward(Random({4, kChannels, 2, 2}, 1, torch::kFloat));
  std::stringstream there;
  torch::save(usual, there);
  SyncBatchNorm module(kChannels);
  torch::load(module, there);
  EXPECT_TRUE(module->running_var.equal(usual->running_var));
  EXPECT_EQ(module->num_batches_tracked.item<int64_t>(), 1);

  module->weight.set_data(torch::full({kChannels}, 3.0f));
  std::stringstream back;
  torch::save(module, back);
  torch::load(usual, back);
  EXPECT_TRUE(usual->weight.eq(3).all().item<bool>());
}

// Of the module's exchanges, as an error tells it.
std::string ExchangeName(SyncBatchNormImpl& module) {
  const std::string text = ErrorText([&] { module.forward(torch::Tensor()); });
  const size_t begin = text.find('\'') + 1;
  return text.substr(begin, text.find('\'', begin) - begin);
}

TEST(SyncBatchNormTest, EveryModuleHasOneNameOfItsOwn) {
  SyncBatchNorm module(kChannels);
  SyncBatchNorm other(2 * kChannels);
  const std::string name = ExchangeName(*module);
  EXPECT_THAT(name, HasSubstr("sync_batch_norm.noname."));
  const auto clone =
      std::dynamic_pointer_cast<SyncBatchNormImpl>(module->clone());
  SyncBatchNormImpl copy(*module);
  std::set<std::string> names = {name};
  for (SyncBatchNormImpl* one : {&*other, clone.get(), &copy}) {
    const std::string of_one = ExchangeName(*one);
    EXPECT_TRUE(names.insert(of_one).second) << of_one;
    EXPECT_EQ(ExchangeName(*one), of_one);
  }
  EXPECT_EQ(ExchangeName(*module), name);
}

TEST(SyncBatchNormTest, ModuleCanBeUsedTwiceInOneForward) {
  torch::manual_seed(8);
  const torch::Tensor rows = torch::randn({4 * size(), kChannels});
  const torch::Tensor whole = rows.clone().requires_grad_();
  const torch::Tensor mine =
      rows.slice(0, 4 * rank(), 4 * (rank() + 1)).clone().requires_grad_();
  SyncBatchNorm module(kChannels);
  torch::nn::BatchNorm1d alone(kChannels);
  for (int step = 0; step < 4; ++step) {
    module->forward(module->forward(mine).pow(3)).pow(3).sum().backward();
    alone->forward(alone->forward(whole).pow(3)).pow(3).sum().backward();
  }
  EXPECT_TRUE(torch::allclose(
      mine.grad(), whole.grad().slice(0, 4 * rank(), 4 * (rank() + 1)), 1e-3,
      1e-3));
}

TEST(SyncBatchNormTest, CloneIsIndependent) {
  SyncBatchNorm module(kChannels);
  const auto clone =
      std::dynamic_pointer_cast<SyncBatchNormImpl>(module->clone());
  ASSERT_NE(clone, nullptr);
  clone->running_mean.fill_(7);
  EXPECT_TRUE(module->running_mean.eq(0).all().item<bool>());
  std::ostringstream text;
  text << *clone;
  EXPECT_EQ(text.str(),
            "hvdlite::SyncBatchNorm(3, eps=1e-05, momentum=0.1, affine=true, "
            "track_running_stats=true)");
}

}  // namespace
}  // namespace hvdlite
