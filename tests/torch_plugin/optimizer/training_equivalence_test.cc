// Compares training on several ranks, each on its share of a mini-batch, with
// one process on the whole mini-batch. Covers every model with every option and
// every optimizer of LibTorch, with and without gradient_as_fusion_view.
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/torch_plugin/compression_rounds.h"
#include "tests/torch_plugin/optimizer_kinds.h"
#include "tests/torch_plugin/rank_values.h"
#include "tests/torch_plugin/training_models.h"

namespace hvdlite {
namespace {

using Options = DistributedOptimizerOptions;
using MakeModel = std::function<std::shared_ptr<TrainedModel>()>;
using MakeFor = std::function<std::unique_ptr<torch::optim::Optimizer>(
    std::vector<torch::Tensor>)>;

template <typename Optimizer, typename OptimizerOptions>
MakeFor Maker(const OptimizerOptions& options) {
  return [options](std::vector<torch::Tensor> parameters) {
    return std::make_unique<Optimizer>(std::move(parameters), options);
  };
}

MakeFor Sgd(double rate) {
  return Maker<torch::optim::SGD>(torch::optim::SGDOptions(rate));
}

struct Way {
  MakeFor optimizer;
  Options options;
  double tolerance = 1e-8;
  bool in_closures = false;
  // Changes gradients between synchronize() and step().
  bool clips = false;
  // Saves and loads the optimizer's state during the training.
  bool resumes = false;
};

// Gradients of zeros count, except where a parameter is frozen later: then it
// has no gradient.
void DropGradients(DistributedOptimizer& optimizer, TrainedModel& model,
                   int step) {
  const bool freezes = dynamic_cast<FreezingModel*>(&model) != nullptr;
  if (step % 3 == 0) {
    DropGradients(model);
  } else {
    optimizer.zero_grad(/*set_to_none=*/freezes || step % 3 == 1);
  }
}

torch::Tensor Dense(const torch::Tensor& tensor) {
  return tensor.is_sparse() ? tensor.to_dense() : tensor;
}

// Compares parameters and gradients. On two ranks they must be equal to the
// last bit, since the order of adding two ranks makes no difference.
void ExpectViewsChangeNothing(const TrainedModel& views,
                              const TrainedModel& plain,
                              const Options& options) {
  const int members = options.process_set().size();
  // 16-bit sums lose different amounts in different orders.
  if (members > 2 && options.compression() != Compression::None) return;
  // The rounding of Adasum depends on what is reduced together.
  const bool exact = members <= 2 && options.op() != ReduceOp::Adasum;
  const auto same = [&](const torch::Tensor& a, const torch::Tensor& b) {
    return exact ? Dense(a).equal(Dense(b))
                 : torch::allclose(Dense(a), Dense(b), 1e-5, 1e-7);
  };
  const auto wanted = plain.named_parameters();
  for (const auto& item : views.named_parameters()) {
    const torch::Tensor& one = wanted[item.key()];
    EXPECT_TRUE(same(item.value(), one)) << item.key();
    ASSERT_EQ(item.value().grad().defined(), one.grad().defined());
    if (!one.grad().defined()) continue;
    EXPECT_EQ(item.value().grad().is_sparse(), one.grad().is_sparse());
    EXPECT_TRUE(same(item.value().grad(), one.grad())) << item.key();
  }
}

// Trains three copies of a model: without views, with views (both on the ranks
// of the options' process set, which has this rank), and on this rank alone.
void ExpectTrainsAsOneProcess(const MakeModel& make, const Way& way) {
  const Options& options = way.options;
  const ProcessSet& set = options.process_set();
  const std::shared_ptr<TrainedModel> alone = make();
  const auto optimizer_alone = way.optimizer(alone->parameters());
  const std::shared_ptr<TrainedModel> models[] = {make(), make()};
  std::vector<DistributedOptimizer> optimizers;  // without and with views
  for (const bool views : {false, true}) {
    optimizers.emplace_back(way.optimizer(models[views]->parameters()),
                            models[views]->named_parameters(),
                            Options(options).gradient_as_fusion_view(views));
  }
  const double scale = options.op() == ReduceOp::Sum ? set.size() : 1;
  for (int step = 0; step < 4; ++step) {
    const auto backward = [&](TrainedModel& model, std::vector<int> members,
                              double factor) {
      torch::Tensor sum = torch::zeros({}, torch::kDouble);
      for (int pass = 0; pass < options.backward_passes_per_step(); ++pass) {
        for (const int member : members) {
          // Different sets use different samples.
          const torch::Tensor loss =
              model.LossOf(member, set.size(),
                           1000 * set.ranks().front() + 10 * step + pass) *
              factor;
          loss.backward();
          sum += loss.detach();
        }
      }
      return sum;
    };
    const auto run = [&](auto& optimizer, TrainedModel& model, auto drop,
                         auto loss) {
      model.Prepare(step + 1);  // so that frozen parameters change twice
      const auto closure = [&] {
        drop();
        return loss();
      };
      if (way.in_closures) return optimizer.step(closure);
      closure();
      return torch::Tensor();
    };
    const torch::Tensor loss_alone = run(
        *optimizer_alone, *alone, [&] { DropGradients(*alone); },
        [&] {
          std::vector<int> members(static_cast<size_t>(set.size()));
          std::iota(members.begin(), members.end(), 0);
          torch::Tensor sum = backward(*alone, members, scale / set.size());
          for (torch::Tensor& one : alone->parameters()) {
            if (options.sparse_as_dense() && one.grad().defined()) {
              one.mutable_grad() = Dense(one.grad());
            }
          }
          return sum;
        });
    if (way.clips) {
      torch::nn::utils::clip_grad_norm_(alone->parameters(), 0.5);
    }
    if (!way.in_closures) optimizer_alone->step();
    for (const bool views : {false, true}) {
      SCOPED_TRACE(::testing::Message()
                   << "step " << step << (views ? " with" : " without")
                   << " views");
      DistributedOptimizer& optimizer = optimizers[views];
      TrainedModel& model = *models[views];
      const torch::Tensor loss = run(
          optimizer, model, [&] { DropGradients(optimizer, model, step); },
          [&] { return backward(model, {set.rank()}, 1); });
      if (way.clips) {
        optimizer.synchronize();
        torch::nn::utils::clip_grad_norm_(model.parameters(), 0.5);
      }
      if (way.in_closures) {
        EXPECT_NEAR(loss.item<double>() * scale, loss_alone.item<double>(),
                    std::abs(loss_alone.item<double>()) * way.tolerance);
      } else {
        optimizer.step();
      }
      for (const auto& item : model.named_parameters()) {
        EXPECT_EQ(item.value().grad().defined(),
                  alone->named_parameters()[item.key()].grad().defined())
            << item.key();
      }
      if (options.op() != ReduceOp::Adasum &&
          options.compression() == Compression::None) {
        ExpectClose(model, *alone, way.tolerance);
      }
      if (way.resumes) {
        std::stringstream checkpoint;
        torch::save(optimizer.inner(), checkpoint);
        torch::load(optimizer.inner(), checkpoint);
      }
    }
    ExpectViewsChangeNothing(*models[1], *models[0], options);
  }
  for (const auto& model : models) ExpectSameOnAllRanks(*model, set);
}

template <typename Model>
std::shared_ptr<TrainedModel> Make() {
  return std::make_shared<Model>();
}

struct Kind {
  const char* name;
  MakeModel make;
  bool is_sparse = false;
  bool is_complex = false;
};

const Kind kKinds[] = {
    {"Net", Make<NetModel>},
    {"Freezing", Make<FreezingModel>},
    {"Mixed", Make<MixedModel>},
    {"TwoHeads", Make<TwoHeadsModel>},
    {"Words", Make<WordsModel>, true},
    {"Complex", Make<ComplexModel>, false, true},
};

struct NamedWay {
  const char* name;
  Way way;
  bool in_sets = false;
};

std::vector<NamedWay> Ways() {
  const MakeFor momentum = Maker<torch::optim::SGD>(
      torch::optim::SGDOptions(0.05).momentum(0.9).weight_decay(0.1));
  std::vector<NamedWay> ways = {
      {"Average", {momentum, Options()}},
      {"Sum", {momentum, Options().op(ReduceOp::Sum)}},
      {"Adasum", {momentum, Options().op(ReduceOp::Adasum)}},
      {"Predivided", {momentum, Options().gradient_predivide_factor(3)}},
      {"Float16", {momentum, Options().compression(Compression::FP16)}},
      {"Bfloat16", {momentum, Options().compression(Compression::BF16)}},
      {"SeveralPasses", {momentum, Options().backward_passes_per_step(3)}},
      {"SparseAsDense", {momentum, Options().sparse_as_dense(true)}},
      {"InProcessSets", {momentum, Options()}, /*in_sets=*/true},
      {"Clipped", {momentum, Options()}},
      {"Resumed", {momentum, Options()}}};
  ways[ways.size() - 2].way.clips = true;
  ways.back().way.resumes = true;
  return ways;
}

class TrainingTest
    : public ::testing::TestWithParam<std::tuple<Kind, NamedWay, int64_t>> {};

INSTANTIATE_TEST_SUITE_P(, TrainingTest,
                         ::testing::Combine(::testing::ValuesIn(kKinds),
                                            ::testing::ValuesIn(Ways()),
                                            ::testing::Values(0, 2)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) +
                                  std::get<1>(info.param).name + "Groups" +
                                  std::to_string(std::get<2>(info.param));
                         });

TEST_P(TrainingTest, MatchesOneProcess) {
  const auto& [kind, named, groups] = GetParam();
  Way way = named.way;
  way.options.groups(groups);
  if (kind.is_sparse && !way.options.sparse_as_dense()) {
    way.optimizer = Sgd(0.1);
    if (way.clips || way.options.op() == ReduceOp::Adasum) {
      GTEST_SKIP() << "not for sparse gradients";
    }
  }
  if (kind.is_complex && (way.clips || way.options.op() == ReduceOp::Adasum)) {
    GTEST_SKIP() << "not for complex gradients";
  }
  if (!named.in_sets) {
    ExpectTrainsAsOneProcess(kind.make, way);
    return;
  }
  ForSeveralSets([&, make = kind.make](const ProcessSet& set) {
    way.options.process_set(set);
    ExpectTrainsAsOneProcess(make, way);
  });
}

class OptimizersTest : public ::testing::TestWithParam<OptimizerKind> {};

INSTANTIATE_TEST_SUITE_P(, OptimizersTest,
                         ::testing::ValuesIn(OptimizerKinds()),
                         [](const auto& info) { return info.param.name; });

// Trains with closures and, if the optimizer allows it, without.
TEST_P(OptimizersTest, TrainAsOneProcess) {
  const bool needs_closures = GetParam().name[0] == 'L';
  const MakeFor optimizer = [](std::vector<torch::Tensor> parameters) {
    return GetParam().one({std::move(parameters)});
  };
  const std::pair<const char*, MakeModel> models[] = {
      {"Net", Make<NetModel>}, {"TwoHeads", Make<TwoHeadsModel>}};
  for (const auto& [model, make] : models) {
    Way way = {optimizer, Options(), GetParam().tolerance};
    const auto expect = [&, model = model, make = make](const char* name) {
      SCOPED_TRACE(::testing::Message() << model << ' ' << name);
      ExpectTrainsAsOneProcess(make, way);
    };
    if (!needs_closures) expect("without closures");
    way.in_closures = true;
    expect("in closures");
    way.options = Options().backward_passes_per_step(3).groups(1);
    expect("of several passes in one group");
    ForSeveralSets([&](const ProcessSet& set) {
      way.options = Options().groups(2).process_set(set);
      expect("in process sets");
    });
  }
}

TEST(SparseTrainingTest, AdagradTrainsAsOneProcess) {
  ExpectTrainsAsOneProcess(
      Make<WordsModel>,
      {Maker<torch::optim::Adagrad>(torch::optim::AdagradOptions(0.1)),
       Options()});
}

TEST(CompressedTrainingTest, NearlyMatchesOneProcess) {
  for (const Compression compression : {Compression::FP16, Compression::BF16}) {
    for (const int64_t groups : {0, 2}) {
      SCOPED_TRACE(::testing::Message()
                   << (compression == Compression::FP16 ? "fp16" : "bf16")
                   << " in " << groups << " groups");
      Net exact = MakeNet();
      Net net = MakeNet();
      DistributedOptimizer exact_optimizer = Distribute(exact);
      DistributedOptimizer optimizer = Distribute(
          net, MakeSgd, Options().compression(compression).groups(groups));
      for (int step = 0; step < 3; ++step) {
        const Batch shard = Shard(WholeBatch(step));
        TrainStep(exact, exact_optimizer, {shard});
        TrainStep(net, optimizer, {shard});
      }
      ExpectSameOnAllRanks(*net);
      const torch::Tensor difference =
          (net->linear->weight - exact->linear->weight).abs().max();
      EXPECT_LT(difference.item<double>(), 2e-3);
      // 16 bits must lose some accuracy.
      EXPECT_EQ(difference.item<double>() > 0, testing::CompressionRounds());
    }
  }
}

TEST(AdasumTrainingTest, AveragesEqualGradientsAndAddsOrthogonalOnes) {
  for (const int64_t groups : {0, 1}) {
    SCOPED_TRACE(::testing::Message() << groups << " groups");
    torch::Tensor equal = torch::zeros({8}, torch::kDouble).requires_grad_();
    torch::Tensor orthogonal = torch::zeros({8}).requires_grad_();
    DistributedOptimizer optimizer =
        DistributeSgd({{"equal", equal}, {"orthogonal", orthogonal}},
                      Options().op(ReduceOp::Adasum).groups(groups));
    (equal.sum() + orthogonal[rank()] * (rank() + 1)).backward();
    optimizer.synchronize();
    EXPECT_TRUE(torch::allclose(equal.grad(), torch::ones_like(equal)))
        << equal.grad();
    torch::Tensor expected = torch::zeros({8});
    for (int i = 0; i < size(); ++i) expected[i] = i + 1;
    EXPECT_TRUE(torch::allclose(orthogonal.grad(), expected))
        << orthogonal.grad();
  }
}

// Rank r has r + 1 mini-batches.
TEST(UnevenTrainingTest, RanksJoinWhileTheOthersTrain) {
  const std::pair<const char*, Options> ways[] = {
      {"Plain", Options()},
      {"OneGroup", Options().groups(1)},
      {"SparseAsDense", Options().sparse_as_dense(true)}};
  for (const auto& [name, options] : ways) {
    for (const Kind& kind : kKinds) {
      SCOPED_TRACE(::testing::Message() << kind.name << ' ' << name);
      const std::shared_ptr<TrainedModel> model = kind.make();
      const std::shared_ptr<TrainedModel> alone = kind.make();
      const auto optimizer_alone = Sgd(0.1)(alone->parameters());
      DistributedOptimizer optimizer(Sgd(0.1)(model->parameters()),
                                     model->named_parameters(), options);
      for (int step = 0; step <= rank(); ++step) {
        optimizer.zero_grad();
        model->LossOf(rank(), size(), step).backward();
        optimizer.step();
      }
      const int last = join();
      for (int step = 0; step < size(); ++step) {
        DropGradients(*alone);
        for (int i = step; i < size(); ++i) {
          (alone->LossOf(i, size(), step) / (size() - step)).backward();
        }
        optimizer_alone->step();
      }
      // The last rank has trained with all of them.
      broadcast_parameters(*model, last);
      ExpectClose(*model, *alone);
    }
  }
}

}  // namespace
}  // namespace hvdlite
