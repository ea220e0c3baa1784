// The state of models and optimizers after loading a checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/checkpoint.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/fakes/temporary_directory.h"
#include "tests/torch_plugin/error_text.h"
#include "tests/torch_plugin/optimizer_kinds.h"

namespace hvdlite {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using torch::optim::Optimizer;

std::vector<torch::Tensor> TensorsOf(const torch::nn::Module& model) {
  std::vector<torch::Tensor> tensors = model.parameters();
  for (const torch::Tensor& buffer : model.buffers()) {
    tensors.push_back(buffer);
  }
  return tensors;
}

bool Equal(const std::vector<torch::Tensor>& a,
           const std::vector<torch::Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].scalar_type() != b[i].scalar_type() || !a[i].equal(b[i])) {
      return false;
    }
  }
  return true;
}

std::vector<torch::Tensor> Clones(const std::vector<torch::Tensor>& tensors) {
  std::vector<torch::Tensor> clones;
  for (const torch::Tensor& tensor : tensors) {
    clones.push_back(tensor.detach().clone());
  }
  return clones;
}

torch::nn::Sequential MakeModel() {
  torch::manual_seed(3);
  return torch::nn::Sequential(torch::nn::Linear(3, 4),
                               torch::nn::BatchNorm1d(4),
                               torch::nn::Linear(4, 1));
}

using MakeOptimizer =
    std::function<std::unique_ptr<Optimizer>(torch::nn::Sequential&)>;

MakeOptimizer Of(const MakeOfGroups& make) {
  return [make](torch::nn::Sequential& model) {
    std::vector<torch::Tensor> rest = model[1]->parameters();
    for (const torch::Tensor& one : model[2]->parameters()) rest.push_back(one);
    return make({model[0]->parameters(), rest});
  };
}

struct ModelAndOptimizer {
  explicit ModelAndOptimizer(const MakeOptimizer& make)
      : model(MakeModel()), optimizer(make(model)) {}

  void Step(int steps = 1) {
    for (int i = 0; i < steps; ++i) {
      optimizer->step([&] {
        optimizer->zero_grad();
        const torch::Tensor x = torch::arange(24.).reshape({8, 3}) / 24;
        const torch::Tensor loss = (model->forward(x) - 1).square().mean();
        loss.backward();
        return loss;
      });
    }
  }
  std::vector<torch::Tensor> tensors() const { return TensorsOf(*model); }

  torch::nn::Sequential model;
  std::unique_ptr<Optimizer> optimizer;
};

MakeOptimizer Sgd(double lr = 0.1) {
  return Of(
      OfGroups<torch::optim::SGD>(torch::optim::SGDOptions(lr).momentum(0.9)));
}

MakeOptimizer Adam() {
  return Of(OfGroups<torch::optim::Adam>(torch::optim::AdamOptions(0.01)));
}

class CheckpointStateTest : public ::testing::Test {
 protected:
  void Save(const ModelAndOptimizer& training) {
    save_checkpoint(path_, *training.model, *training.optimizer);
  }
  void Load(ModelAndOptimizer& training) {
    load_checkpoint(path_, *training.model, *training.optimizer);
  }
  // Saves in the format of earlier versions.
  void SavePlain(const torch::nn::Module& model, const Optimizer& optimizer) {
    save_checkpoint(path_, [&](torch::serialize::OutputArchive& archive) {
      archive.write("progress", c10::IValue(std::string()));
      torch::serialize::OutputArchive of_model(archive.compilation_unit());
      model.save(of_model);
      archive.write("model", of_model);
      torch::serialize::OutputArchive of_optimizer(archive.compilation_unit());
      optimizer.save(of_optimizer);
      archive.write("optimizer", of_optimizer);
    });
  }
  // Returns the error of loading into `training`, which must change nothing.
  std::string Refused(ModelAndOptimizer& training) {
    ModelAndOptimizer same(Sgd());
    same.Step(2);
    training.Step(2);
    const std::vector<torch::Tensor> before = Clones(training.tensors());
    std::string text = ErrorText([&] { Load(training); });
    EXPECT_TRUE(Equal(training.tensors(), before));
    EXPECT_EQ(training.optimizer->state().size(),
              same.optimizer->state().size());
    training.Step(2);
    same.Step(2);
    EXPECT_TRUE(Equal(training.tensors(), same.tensors()));
    EXPECT_THAT(text, AllOf(HasSubstr("'" + path_ + "' does not fit"),
                            Not(HasSubstr("INTERNAL ASSERT"))));
    return text;
  }

  const trainers::TemporaryDirectory directory_;
  const std::string path_ = directory_ / "c.pt";
};

class OptimizerCheckpointTest
    : public CheckpointStateTest,
      public ::testing::WithParamInterface<OptimizerKind> {
 protected:
  const MakeOptimizer one_ = Of(GetParam().one);
  const bool is_lbfgs_ = GetParam().name[0] == 'L';

  // `plain`: in the format of earlier versions.
  void ExpectContinues(bool plain) {
    ModelAndOptimizer original(one_);
    original.Step(3);
    for (auto& group : original.optimizer->param_groups()) {
      group.options().set_lr(group.options().get_lr() / 100);
    }
    plain ? SavePlain(*original.model, *original.optimizer) : Save(original);
    ModelAndOptimizer resumed(Of(GetParam().other));
    resumed.Step(2);
    Load(resumed);
    EXPECT_TRUE(Equal(resumed.tensors(), original.tensors()));
    for (size_t i = 0; i < original.optimizer->param_groups().size(); ++i) {
      EXPECT_EQ(resumed.optimizer->param_groups()[i].options().get_lr(),
                original.optimizer->param_groups()[i].options().get_lr());
    }
    original.Step(3);
    resumed.Step(3);
    EXPECT_TRUE(Equal(resumed.tensors(), original.tensors()));
  }
};

INSTANTIATE_TEST_SUITE_P(, OptimizerCheckpointTest,
                         ::testing::ValuesIn(OptimizerKinds()),
                         [](const auto& info) { return info.param.name; });

TEST_P(OptimizerCheckpointTest, RestoresSavedOptionsAndState) {
  ExpectContinues(/*plain=*/false);
}

TEST_P(OptimizerCheckpointTest, ReadsFilesOfEarlierVersions) {
  if (is_lbfgs_) GTEST_SKIP() << "earlier versions could not save it";
  ExpectContinues(/*plain=*/true);
}

TEST_P(OptimizerCheckpointTest, UnsavedStateIsRemoved) {
  ModelAndOptimizer original(one_);
  Save(original);
  ModelAndOptimizer resumed(one_);
  resumed.Step(3);
  Load(resumed);
  original.Step(2);
  resumed.Step(2);
  EXPECT_TRUE(Equal(resumed.tensors(), original.tensors()));
}

TEST_P(OptimizerCheckpointTest, AnotherKindIsRejectedWithItsName) {
  for (const bool plain : {false, true}) {
    ModelAndOptimizer original(one_);
    if (!plain || !is_lbfgs_) original.Step();
    plain ? SavePlain(*original.model, *original.optimizer) : Save(original);
    if (dynamic_cast<torch::optim::SGD*>(original.optimizer.get()) != nullptr) {
      ModelAndOptimizer other(Adam());
      EXPECT_THAT(ErrorText([&] { Load(other); }),
                  AllOf(HasSubstr("'" + path_ +
                                  "' does not fit: its optimizer "
                                  "is torch::optim::SGD, but this one is "
                                  "torch::optim::Adam"),
                        Not(HasSubstr("INTERNAL ASSERT"))));
      EXPECT_TRUE(other.optimizer->state().empty());
      continue;
    }
    ModelAndOptimizer other(Sgd());
    EXPECT_THAT(Refused(other),
                AllOf(HasSubstr("its optimizer is torch::optim::"),
                      HasSubstr("but this one is torch::optim::SGD")));
  }
}

TEST_F(CheckpointStateTest, AnotherModelIsRefusedWithTheTensorsName) {
  using torch::nn::BatchNorm1d;
  using torch::nn::Linear;
  using torch::nn::Sequential;
  struct Other {
    Sequential model;
    std::string text;
  };
  std::vector<Other> others = {
      {MakeModel(), "'0.bias' is Double [4], but this model's is Float [4]"},
      {Sequential(Linear(3, 5), BatchNorm1d(5), Linear(5, 1)),
       "'0.bias' is Float [5], but this model's is Float [4]"},
      {Sequential(Linear(3, 4), BatchNorm1d(4),
                  Linear(torch::nn::LinearOptions(4, 1).bias(false))),
       "it has no tensor '2.bias', which this model has (Float [1])"},
      {Sequential(Linear(3, 4), BatchNorm1d(4), Linear(4, 1), Linear(1, 1)),
       "it has a tensor '3.bias' (Float [1]), which this model does not have"},
      {Sequential(
           Linear(3, 4),
           BatchNorm1d(
               torch::nn::BatchNormOptions(4).track_running_stats(false)),
           Linear(4, 1)),
       "it has no tensor '1.num_batches_tracked'"}};
  others[0].model->to(torch::kDouble);
  for (const Other& other : others) {
    torch::optim::SGD optimizer(other.model->parameters(), 0.1);
    for (const bool plain : {false, true}) {
      if (plain) {
        SavePlain(*other.model, optimizer);
      } else {
        save_checkpoint(path_, *other.model, optimizer);
      }
      ModelAndOptimizer training(Sgd());
      EXPECT_THAT(Refused(training), HasSubstr(other.text));
    }
  }
}

TEST_F(CheckpointStateTest, OtherParameterGroupsAreRefused) {
  ModelAndOptimizer original(Sgd());
  original.Step();
  torch::optim::SGD one_group(original.model->parameters(), 0.1);
  torch::optim::SGD one_less({original.model[0]->parameters()[0]}, 0.1);
  one_less.add_param_group(
      torch::optim::OptimizerParamGroup(original.model[2]->parameters()));
  struct Other {
    const Optimizer& optimizer;
    std::string text;
  };
  for (const Other& other :
       {Other{one_group,
              "its optimizer has 1 parameter groups, but this one "
              "has 2"},
        Other{one_less,
              "its optimizer has 1 parameters in group 0, but this "
              "one has 2"}}) {
    save_checkpoint(path_, *original.model, other.optimizer);
    ModelAndOptimizer training(Sgd());
    EXPECT_THAT(Refused(training), HasSubstr(other.text));
  }
}

TEST_F(CheckpointStateTest, StateOfOtherParametersIsRefused) {
  // The parameters of the first group in the opposite order.
  ModelAndOptimizer original([](torch::nn::Sequential& model) {
    const std::vector<torch::Tensor> all = model->parameters();
    return OfGroups<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(
        0.9))({{all[1], all[0]}, {all.begin() + 2, all.end()}});
  });
  original.Step();
  Save(original);
  ModelAndOptimizer training(Sgd());
  EXPECT_THAT(Refused(training),
              HasSubstr("its optimizer's 'momentum_buffer' of parameter 0 in "
                        "group 0 is Float [4], but this parameter is Float "
                        "[4, 3]"));
}

// A module whose save() writes more tensors than its parameters.
struct Counter : torch::nn::Module {
  Counter() { weight = register_parameter("weight", torch::ones({2})); }
  void save(torch::serialize::OutputArchive& archive) const override {
    Module::save(archive);
    archive.write("count", count);
  }
  void load(torch::serialize::InputArchive& archive) override {
    Module::load(archive);
    archive.read("count", count);
  }
  torch::Tensor weight;
  torch::Tensor count = torch::zeros({1});
};

TEST_F(CheckpointStateTest, TensorsThatAModulesOwnSaveWritesAreLoaded) {
  Counter original;
  original.count.fill_(7);
  torch::optim::SGD optimizer(original.parameters(), 0.1);
  save_checkpoint(path_, original, optimizer);
  Counter loaded;
  torch::optim::SGD other(loaded.parameters(), 0.1);
  load_checkpoint(path_, loaded, other);
  EXPECT_EQ(loaded.count.item<double>(), 7);
}

TEST_F(CheckpointStateTest, SeveralModelsAndOptimizersInOneArchive) {
  ModelAndOptimizer generator(Sgd());
  ModelAndOptimizer critic(Adam());
  generator.Step(2);
  critic.Step(2);
  const auto write = [&](torch::serialize::OutputArchive& archive) {
    write_state(archive, "generator", *generator.model);
    write_state(archive, "generator's", *generator.optimizer);
    write_state(archive, "critic", *critic.model);
    write_state(archive, "critic's", *critic.optimizer);
  };
  save_checkpoint(path_, write);
  ModelAndOptimizer other(Sgd(0.9));
  load_checkpoint(path_, [&](torch::serialize::InputArchive& archive) {
    read_state(archive, "generator", *other.model);
    read_state(archive, "generator's", *other.optimizer);
  });
  other.Step();
  generator.Step();
  EXPECT_TRUE(Equal(other.tensors(), generator.tensors()));
  EXPECT_THAT(ErrorText([&] {
                load_checkpoint(
                    path_, [&](torch::serialize::InputArchive& archive) {
                      read_state(archive, "critic's", *other.optimizer);
                    });
              }),
              HasSubstr("its optimizer is torch::optim::Adam"));
}

TEST_F(CheckpointStateTest, SavingLbfgsAfterAStepChangesNothing) {
  const auto make = Of(Lbfgs(torch::optim::LBFGSOptions(0.1).max_iter(3)));
  ModelAndOptimizer training(make);
  ModelAndOptimizer undisturbed(make);
  CheckpointWriter writer(path_);
  for (int i = 0; i < 3; ++i) {
    training.Step();
    undisturbed.Step();
    Save(training);
    writer.save(*training.model, *training.optimizer);
    EXPECT_TRUE(writer.wait());
  }
  EXPECT_TRUE(Equal(training.tensors(), undisturbed.tensors()));
}

// The optimizer has a state, but no direction yet.
TEST_F(CheckpointStateTest, LbfgsWithStateButWithoutDirection) {
  const auto make = [](double tolerance) {
    return Of(Lbfgs(torch::optim::LBFGSOptions(0.1).tolerance_grad(tolerance)));
  };
  ModelAndOptimizer original(make(1e9));
  original.Step();
  Save(original);
  ModelAndOptimizer resumed(make(1e-7));
  resumed.Step(2);
  Load(resumed);
  EXPECT_TRUE(Equal(resumed.tensors(), original.tensors()));
  original.Step();
  resumed.Step();
  EXPECT_TRUE(Equal(resumed.tensors(), original.tensors()));
}

struct Unwritable : torch::optim::SGD {
  using SGD::SGD;
  void save(torch::serialize::OutputArchive& archive) const override {
    archive.write("list", c10::IValue(std::vector<torch::Tensor>(1)));
  }
};

TEST_F(CheckpointStateTest, UnwritableStateIsAnErrorThatNamesTheFile) {
  ModelAndOptimizer training(Sgd());
  const Unwritable optimizer(training.model->parameters(), 0.1);
  EXPECT_THAT(
      ErrorText([&] { save_checkpoint(path_, *training.model, optimizer); }),
      HasSubstr("cannot write the checkpoint '" + path_ + "': "));
  EXPECT_FALSE(checkpoint_exists(path_));
  // In the background an error does not end the program.
  CheckpointWriter writer(path_);
  ::testing::internal::CaptureStderr();
  writer.save(*training.model, optimizer);
  EXPECT_FALSE(writer.wait());
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      AllOf(HasSubstr("warning"),
            HasSubstr("cannot write the checkpoint '" + path_ + "': ")));
}

// An optimizer without state, which needs no save() and load().
class SignDescent : public Optimizer {
 public:
  explicit SignDescent(const std::vector<torch::Tensor>& parameters)
      : Optimizer({torch::optim::OptimizerParamGroup(parameters)},
                  std::make_unique<torch::optim::SGDOptions>(0.1)) {}
  torch::Tensor step(LossClosure) override { return {}; }
};

TEST_F(CheckpointStateTest, AnOptimizerWithoutStateNeedsNoSaveOfItsOwn) {
  torch::nn::Sequential model = MakeModel();
  SignDescent optimizer(model->parameters());
  optimizer.param_groups()[0].options().set_lr(0.25);
  save_checkpoint(path_, *model, optimizer, "progress");
  torch::nn::Sequential other = MakeModel();
  SignDescent loaded(other->parameters());
  EXPECT_EQ(load_checkpoint(path_, *other, loaded), "progress");
  EXPECT_EQ(loaded.param_groups()[0].options().get_lr(), 0.25);
}

}  // namespace
}  // namespace hvdlite
