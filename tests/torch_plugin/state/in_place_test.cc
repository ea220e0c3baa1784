// elastic::run() when the remaining ranks continue in place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace hvdlite::elastic {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<DistributedOptimizer> MakeOptimizer(torch::nn::Linear& model) {
  return std::make_unique<DistributedOptimizer>(
      std::make_unique<torch::optim::SGD>(
          model->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9)),
      model->named_parameters());
}

void Step(torch::nn::Linear& model, DistributedOptimizer& optimizer) {
  optimizer.zero_grad();
  model(torch::ones({1, 2})).square().sum().backward();
  optimizer.step();
}

// Breaks the world, like the loss of a rank.
void BreakTheWorld() {
  torch::nn::Linear model(2, 1);
  try {
    const auto optimizer = MakeOptimizer(model);
    throw std::runtime_error("on purpose");
  } catch (const std::runtime_error&) {
  }
}

class InPlaceTest : public ::testing::Test {
 protected:
  InPlaceTest() {
    Config config = Config::from_env();
    config.backend = "single";
    init(config);
  }
  ~InPlaceTest() override { shutdown(); }
};

struct Trained {
  torch::Tensor weight;
  // The sampler's position at each call of `train`.
  std::vector<int64_t> positions;
};

// Takes ten steps. In the fourth the world breaks, before or after the commit.
enum class Breaks { Never, BeforeCommit, AfterCommit };
Trained TrainWith(Breaks breaks) {
  torch::manual_seed(3);
  torch::nn::Linear model(2, 1);
  const auto optimizer = MakeOptimizer(model);
  DistributedSampler sampler(10, /*batch_size=*/1, /*seed=*/1);
  State state(StateOptions().store("").agrees_to_stop(false));
  state.model(*model).optimizer(*optimizer).sampler(sampler);
  Trained result;
  EXPECT_EQ(run(state,
                [&] {
                  result.positions.push_back(sampler.position());
                  const bool first = result.positions.size() == 1;
                  while (const auto indices = sampler.next()) {
                    Step(model, *optimizer);
                    const bool here = first && sampler.position() == 4;
                    if (here && breaks == Breaks::BeforeCommit) {
                      BreakTheWorld();
                      Step(model, *optimizer);
                    }
                    state.commit();
                    if (here && breaks == Breaks::AfterCommit) BreakTheWorld();
                  }
                }),
            0);
  result.weight = model->weight.detach().clone();
  return result;
}

TEST_F(InPlaceTest, RunContinuesFromTheLastCommitBitForBit) {
  const Trained undisturbed = TrainWith(Breaks::Never);
  EXPECT_THAT(undisturbed.positions, ElementsAre(0));
  EXPECT_EQ(replaced_worlds(), 0);
  const Trained before = TrainWith(Breaks::BeforeCommit);
  EXPECT_THAT(before.positions, ElementsAre(0, 3));
  const Trained after = TrainWith(Breaks::AfterCommit);
  EXPECT_THAT(after.positions, ElementsAre(0, 4));
  EXPECT_EQ(replaced_worlds(), 2);
  EXPECT_TRUE(torch::equal(before.weight, undisturbed.weight));
  EXPECT_TRUE(torch::equal(after.weight, undisturbed.weight));
}

TEST_F(InPlaceTest, ARankLostBeforeTheFirstCommitLosesNothingElse) {
  torch::nn::Linear model(2, 1);
  const auto optimizer = MakeOptimizer(model);
  State state(StateOptions().store(""));
  state.model(*model).optimizer(*optimizer);
  const torch::Tensor begin = model->weight.detach().clone();
  int calls = 0;
  EXPECT_EQ(run(state,
                [&] {
                  EXPECT_TRUE(torch::equal(model->weight, begin));
                  if (++calls == 2) return;
                  Step(model, *optimizer);
                  BreakTheWorld();
                  Step(model, *optimizer);
                }),
            0);
  EXPECT_EQ(calls, 2);
}

TEST_F(InPlaceTest, AProgramWithoutRunReplacesItsWorldItself) {
  const int before = replaced_worlds();
  BreakTheWorld();
  EXPECT_THROW(allreduce(torch::ones({})), WorldBroken);
  EXPECT_TRUE(replace_world());
  EXPECT_EQ(replaced_worlds(), before + 1);
  EXPECT_EQ(allreduce(torch::ones({})).item<float>(), 1);
}

// This is the last test: afterwards the process has no world.
TEST_F(InPlaceTest, ZRepeatedlyBrokenWorldIsGivenUp) {
  torch::nn::Linear model(2, 1);
  State state(StateOptions().store(""));
  state.model(*model);
  int calls = 0;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run(state,
                [&] {
                  ++calls;
                  BreakTheWorld();
                  allreduce(torch::ones({}));
                }),
            1);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("has broken again, although no rank was lost"));
  EXPECT_LE(calls, 10);
}

}  // namespace
}  // namespace hvdlite::elastic
