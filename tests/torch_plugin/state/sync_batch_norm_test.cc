// Compares SyncBatchNorm on shares of a mini-batch with LibTorch's BatchNorm on
// the whole mini-batch, on any number of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/torch_plugin/same_error.h"
#include "tests/torch_plugin/training_models.h"

namespace hvdlite {
namespace {

using ::testing::HasSubstr;

using torch::nn::BatchNormOptions;

constexpr int64_t kChannels = 3;

// The shares differ in length. With three or more ranks, that of rank 1 is
// empty.
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

// The same with equally many rows on all ranks.
constexpr int64_t kRows = 4;
torch::Tensor EqualPart(const torch::Tensor& whole, int index = rank()) {
  return whole.slice(0, index * kRows, (index + 1) * kRows);
}

// Returns the same values on every rank.
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

// LibTorch's module for inputs of any number of dimensions.
torch::Tensor Reference(torch::nn::BatchNorm1d& module,
                        const torch::Tensor& input) {
  if (input.dim() <= 3) return module->forward(input);
  return module->forward(input.flatten(2)).view(input.sizes());
}

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

// Compares outputs, gradients and running statistics of two steps. LibTorch
// computes 16-bit inputs in float32.
void ExpectAsOneProcess(const Case& c) {
  SyncBatchNorm module(c.options);
  torch::nn::BatchNorm1d reference(c.options);
  const bool is_16_bit = c.type == torch::kHalf || c.type == torch::kBFloat16;
  const at::ScalarType reference_type = is_16_bit ? torch::kFloat : c.type;
  if (!is_16_bit) module->to(c.type);
  reference->to(reference_type);
  module->train(c.training);
  reference->train(c.training);
  auto parameters = reference->named_parameters();
  for (auto& item : module->named_parameters()) {
    const torch::NoGradGuard no_grad;
    const torch::Tensor values = Random({kChannels}, 5);
    item.value().copy_(values);
    parameters[item.key()].copy_(values);
  }
  for (uint64_t step = 0; step < 2; ++step) {
    torch::Tensor whole = Random(ShapeOf(c.dimensions), step, c.type);
    const torch::Tensor weights =
        Random(ShapeOf(c.dimensions), 10 + step, c.type);
    const torch::Tensor laid =
        c.channels_last ? whole.contiguous(torch::MemoryFormat::ChannelsLast)
                        : whole;
    torch::Tensor input =
        Mine(laid).detach().clone().requires_grad_(c.input_requires_gradient);
    whole = whole.to(reference_type).detach().requires_grad_();
    const torch::Tensor output = module->forward(input);
    const torch::Tensor expected = Reference(reference, whole);
    EXPECT_EQ(output.scalar_type(), c.type);
    EXPECT_EQ(output.sizes(), input.sizes());
    module->zero_grad();
    (output * Mine(weights)).sum().backward();
    DropGradients(*reference);
    (expected * weights).sum().backward();
    ASSERT_EQ(input.grad().defined(), c.input_requires_gradient);
    if (input.numel() > 0) {
      EXPECT_CLOSE(output, Mine(expected), c.tolerance);
    }
    if (c.input_requires_gradient) {
      EXPECT_EQ(input.grad().scalar_type(), c.type);
      if (input.numel() > 0) {
        EXPECT_CLOSE(input.grad(), Mine(whole.grad()), c.tolerance);
      }
    }
    for (const auto& item : module->named_parameters()) {
      EXPECT_CLOSE(
          allreduce(item.value().grad(), AllreduceOptions().op(ReduceOp::Sum)),
          parameters[item.key()].grad(), 10 * c.tolerance);
    }
  }
  auto buffers = reference->named_buffers();
  EXPECT_EQ(module->named_buffers().size(), buffers.size());
  for (const auto& item : module->named_buffers()) {
    if (!item.value().defined()) {
      EXPECT_FALSE(buffers[item.key()].defined());
      continue;
    }
    EXPECT_CLOSE(item.value(), buffers[item.key()], c.tolerance);
  }
}

TEST(SyncBatchNormTest, MatchesOneProcess) {
  const BatchNormOptions usual(kChannels);
  const auto with = [&](auto change) {
    BatchNormOptions options = usual;
    change(options);
    return options;
  };
  const BatchNormOptions untracked =
      with([](auto& options) { options.track_running_stats(false); });
  const std::pair<const char*, Case> cases[] = {
      {"two dimensions", {.dimensions = 2}},
      {"three dimensions", {.dimensions = 3}},
      {"four dimensions", {}},
      {"five dimensions", {.dimensions = 5}},
      {"channels last", {.channels_last = true}},
      {"channels last of float32",
       {.type = torch::kFloat, .channels_last = true, .tolerance = 1e-4}},
      {"input without gradient", {.input_requires_gradient = false}},
      {"evaluation", {.training = false}},
      {"float32", {.type = torch::kFloat, .tolerance = 1e-4}},
      {"bfloat16", {.type = torch::kBFloat16, .tolerance = 5e-2}},
      {"float16", {.type = torch::kHalf, .tolerance = 1e-2}},
      {"cumulative average without momentum",
       {with([](auto& options) { options.momentum(torch::nullopt); })}},
      {"without weight and bias",
       {with([](auto& options) { options.affine(false); })}},
      {"without running statistics", {untracked}},
      {"evaluation without running statistics",
       {.options = untracked, .training = false}},
  };
  for (const auto& [name, one] : cases) {
    SCOPED_TRACE(name);
    ExpectAsOneProcess(one);
  }
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

// The naive formula E[x^2] - E[x]^2 has no correct digit here.
TEST(SyncBatchNormTest, VarianceIsStableFarFromZero) {
  SyncBatchNorm module(BatchNormOptions(1).momentum(1.0));
  torch::manual_seed(4);
  const torch::Tensor whole = torch::randn({AllRows(), 1, 100}) + 1e4;
  module->forward(Mine(whole));
  const double expected = whole.to(torch::kDouble).var().item<double>();
  EXPECT_NEAR(module->running_var.item<double>(), expected, expected * 1e-4);
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
  ExpectSameError([&] { module->forward(input); }, "single value per channel");
  EXPECT_EQ(module->num_batches_tracked.item<int64_t>(), 0);
}

TEST(SyncBatchNormTest, GradientOnSomeRanksOnlyIsTheSameErrorOnAll) {
  if (size() == 1) return;
  SyncBatchNorm module(kChannels);
  torch::Tensor input = torch::rand({3, kChannels}).requires_grad_(rank() == 0);
  ExpectSameError([&] { module->forward(input); }, "require a gradient");
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

// One training step on the ranks of the set must equal LibTorch's step on all
// of their rows.
void ExpectStepAsOneProcess(SyncBatchNorm& module,
                            torch::nn::BatchNorm1d& alone,
                            const ProcessSet& process_set = {}) {
  torch::manual_seed(8);
  const torch::Tensor rows = torch::randn({size() * kRows, kChannels});
  std::vector<torch::Tensor> of_members;
  for (const int member : process_set.ranks()) {
    of_members.push_back(EqualPart(rows, member));
  }
  const torch::Tensor whole = torch::cat(of_members).requires_grad_();
  const torch::Tensor mine = EqualPart(rows).clone().requires_grad_();
  module->forward(mine).pow(3).sum().backward();
  alone->forward(whole).pow(3).sum().backward();
  EXPECT_TRUE(torch::allclose(
      mine.grad(), EqualPart(whole.grad(), process_set.rank()), 1e-3, 1e-4));
  EXPECT_TRUE(torch::allclose(module->running_mean, alone->running_mean));
  EXPECT_TRUE(torch::allclose(module->running_var, alone->running_var));
}

TEST(SyncBatchNormTest, BadInputOnOneRankIsTheSameErrorOnAll) {
  const std::vector<std::pair<torch::Tensor, std::string>> cases = {
      {torch::zeros({kRows, 2}), "[4, 2]"},
      {torch::zeros({kChannels}), "[N, 3, ...]"},
      {torch::zeros({kRows, kChannels}, torch::kLong), "is not supported"},
      {torch::zeros({kRows, kChannels}).to_sparse(), "only dense CPU tensors"},
      {torch::Tensor(), "undefined"}};
  for (const auto& [bad, reason] : cases) {
    SyncBatchNorm module(kChannels);
    torch::nn::BatchNorm1d alone(kChannels);
    ExpectSameError(
        [&, bad = bad] {
          module->forward(
              IsLast() ? bad
                       : torch::rand({kRows, kChannels}).requires_grad_());
        },
        reason);
    EXPECT_EQ(module->num_batches_tracked.item<int64_t>(), 0);
    ExpectStepAsOneProcess(module, alone);
  }
}

TEST(SyncBatchNormTest, StatisticsAreThoseOfTheProcessSet) {
  // Rank 0, the last rank and, with four or more ranks, one between them.
  std::vector<int> ranks = {0};
  if (size() > 3) ranks.push_back(2);
  if (size() > 1) ranks.push_back(size() - 1);
  const ProcessSet set = add_process_set(ranks);
  if (set.included()) {
    SyncBatchNorm module(torch::nn::BatchNormOptions(kChannels), set);
    torch::nn::BatchNorm1d alone(kChannels);
    ExpectStepAsOneProcess(module, alone, set);
    ExpectStepAsOneProcess(module, alone, set);
  }
  remove_process_set(set);
}

template <typename BatchNorm>
torch::nn::Sequential MakeModel() {
  torch::manual_seed(2);
  torch::nn::Sequential model(torch::nn::Linear(2, 8), BatchNorm(8),
                              torch::nn::ReLU(), torch::nn::Linear(8, 2));
  model->to(torch::kDouble);
  return model;
}

// backward() runs through the module while gradients are reduced.
TEST(SyncBatchNormTest, ModelsTrainAsInOneProcess) {
  auto model = MakeModel<SyncBatchNorm>();
  auto alone = MakeModel<torch::nn::BatchNorm1d>();
  DistributedOptimizer optimizer =
      DistributeSgd(model->named_parameters(), {}, 0.1);
  torch::optim::SGD optimizer_alone(alone->parameters(), 0.1);
  for (uint64_t step = 0; step < 5; ++step) {
    const torch::Tensor whole = Random({size() * kRows, 2}, step);
    optimizer.zero_grad();
    model->forward(EqualPart(whole)).square().mean().backward();
    optimizer.step();
    DropGradients(*alone);
    alone->forward(whole).square().mean().backward();
    optimizer_alone.step();
    ExpectClose(*model, *alone, 1e-8);
  }
  const auto buffers = alone->named_buffers();
  for (const auto& item : model->named_buffers()) {
    EXPECT_CLOSE(item.value(), buffers[item.key()], 1e-8);
  }
}

TEST(SyncBatchNormTest, ArchivesAreCompatibleWithBatchNorm) {
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

// Returns the name of the module's operations from the text of an error.
std::string ExchangeName(SyncBatchNormImpl& module) {
  const std::string text = ErrorText([&] { module.forward(torch::Tensor()); });
  const size_t begin = text.find('\'') + 1;
  return text.substr(begin, text.find('\'', begin) - begin);
}

TEST(SyncBatchNormTest, EveryModuleHasItsOwnName) {
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
  const torch::Tensor rows = torch::randn({kRows * size(), kChannels});
  const torch::Tensor whole = rows.clone().requires_grad_();
  const torch::Tensor mine = EqualPart(rows).clone().requires_grad_();
  SyncBatchNorm module(kChannels);
  torch::nn::BatchNorm1d alone(kChannels);
  for (int step = 0; step < 4; ++step) {
    module->forward(module->forward(mine).pow(3)).pow(3).sum().backward();
    alone->forward(alone->forward(whole).pow(3)).pow(3).sum().backward();
  }
  EXPECT_TRUE(
      torch::allclose(mine.grad(), EqualPart(whole.grad()), 1e-3, 1e-3));
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
