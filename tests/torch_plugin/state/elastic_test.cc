#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/commit_store.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "tests/torch_plugin/error_text.h"

namespace hvdlite::elastic {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A training of which all ranks have an own copy, equal or not.
struct Training {
  explicit Training(double weight) {
    Fill(weight);
    auto sgd = std::make_unique<torch::optim::SGD>(
        model->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
    optimizer = std::make_unique<DistributedOptimizer>(
        std::move(sgd), model->named_parameters());
  }

  void Fill(double value) {
    const torch::NoGradGuard no_grad;
    for (torch::Tensor& parameter : model->parameters()) {
      parameter.fill_(value);
    }
  }
  void Step() {
    optimizer->zero_grad();
    model(torch::ones({1, 2})).square().sum().backward();
    optimizer->step();
  }
  double weight() const { return model->weight[0][0].item<double>(); }
  State& RegisterAt(State& state) {
    return state.model(*model)
        .optimizer(*optimizer)
        .sampler(sampler)
        .value("steps", steps);
  }

  torch::nn::Linear model{2, 1};
  std::unique_ptr<DistributedOptimizer> optimizer;
  DistributedSampler sampler{100, 3, 1};
  int64_t steps = 0;
};

class ElasticTest : public ::testing::Test {
 protected:
  // Only rank 0 writes, and so every rank has a directory of its own.
  const trainers::TemporaryDirectory directory_;
  const std::string path_ = directory_ / "c.pt";
  const StateOptions options_ = StateOptions().path(path_).store("");

  void Damage(const std::string& file) {
    if (rank() != 0) return;
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(0, std::ios::end);
    stream.seekp(static_cast<std::streamoff>(stream.tellg()) / 2);
    const std::string zeros(16, '\x5a');
    stream.write(zeros.data(), static_cast<std::streamsize>(zeros.size()));
  }
};

TEST_F(ElasticTest, GoesBackToTheLastCommitOnAllRanks) {
  Training training(1);
  State state(StateOptions().store(""));
  training.RegisterAt(state);
  EXPECT_FALSE(state.can_restore());
  EXPECT_THAT(ErrorText([&] { state.restore(); }),
              HasSubstr("nothing to restore"));
  training.Step();
  training.sampler.set_epoch(2);
  training.sampler.next();
  training.steps = 7;
  state.commit();
  const double committed = training.weight();
  training.Step();
  const double next = training.weight();
  training.sampler.next();
  training.steps = 8;
  training.Fill(9 + rank());
  training.optimizer->inner().param_groups()[0].options().set_lr(5);
  EXPECT_TRUE(state.can_restore());
  state.restore();
  EXPECT_EQ(training.weight(), committed);
  EXPECT_EQ(training.steps, 7);
  EXPECT_EQ(training.sampler.epoch(), 2);
  EXPECT_EQ(training.sampler.position(), 3 * size());
  EXPECT_EQ(state.restored_ranks(), size());
  EXPECT_EQ(state.restored_commit(), 1U);
  training.Step();  // wrong without momentum and learning rate
  EXPECT_EQ(training.weight(), next);
}

TEST_F(ElasticTest, AValueOfAnotherTypeChangesNothing) {
  {
    Training training(1);
    torch::Tensor average = torch::ones({2});
    std::string kind = "a";
    State state(options_);
    training.RegisterAt(state).value("average", average).value("kind", kind);
    training.Step();
    training.sampler.next();
    training.steps = 7;
    state.commit();
    state.flush();
  }
  Training training(5);
  torch::Tensor average = torch::zeros({2});
  int64_t kind = 3;
  State state(options_);
  training.RegisterAt(state).value("average", average).value("kind", kind);
  training.Step();
  training.optimizer->inner().param_groups()[0].options().set_lr(0.1);
  const double weight = training.weight();
  EXPECT_THAT(ErrorText([&] { state.restore(); }),
              AllOf(HasSubstr("does not fit"),
                    HasSubstr("'kind' is of another type")));
  EXPECT_EQ(training.weight(), weight);
  EXPECT_EQ(training.optimizer->inner().state().size(), 2U);
  EXPECT_EQ(training.optimizer->inner().param_groups()[0].options().get_lr(),
            0.1);
  EXPECT_EQ(training.steps, 0);
  EXPECT_EQ(training.sampler.position(), 0);
  EXPECT_TRUE(average.eq(0).all().item<bool>());
  EXPECT_EQ(kind, 3);
}

TEST_F(ElasticTest, ATensorThatIsNotYetDefinedIsRestored) {
  torch::Tensor tensor = torch::ones({2});
  State state(options_);
  state.value("tensor", tensor);
  state.commit();
  tensor = torch::Tensor();
  state.restore();
  EXPECT_TRUE(tensor.eq(1).all().item<bool>());
}

TEST_F(ElasticTest, EachRankGoesOnWithItsOwnBuffers) {
  torch::nn::Sequential model(torch::nn::BatchNorm1d(2),
                              torch::nn::BatchNorm1d(3));
  State state(StateOptions().store(""));
  state.model(*model);
  const auto fill = [&](double value) {
    for (torch::Tensor& buffer : model->buffers()) buffer.fill_(value);
  };
  const auto expect = [&](double value) {
    for (const torch::Tensor& buffer : model->buffers()) {
      EXPECT_TRUE(buffer.eq(value).all().item<bool>()) << buffer;
    }
  };
  fill(3 + rank());
  state.commit();
  fill(-1);
  state.restore();
  expect(3 + rank());
  state.sync(size() - 1);  // nothing is restored here
  expect(2 + size());
  state.commit();  // all the same
  fill(-1);
  state.restore();
  expect(2 + size());
}

TEST_F(ElasticTest, ValuesOfAllKindsComeBack) {
  bool flag = true;
  int count = -3;
  uint64_t large = ~uint64_t{0};
  float ratio = 0.1F;
  double precise = 0.1;
  std::string text("any \0\xff bytes", 12);
  torch::Tensor tensor = torch::arange(6).reshape({2, 3});
  std::vector<int> counts = {1, -2};
  std::vector<double> losses = {0.3, 0.1};
  std::vector<bool> flags = {true, false};
  std::vector<std::string> names = {"a", "", "c d"};
  std::vector<std::string> none;
  std::vector<torch::Tensor> tensors = {torch::ones({2}), torch::zeros({})};
  State state(options_);
  state.value("a flag", flag).value("count", count).value("large", large);
  state.value("ratio", ratio).value("precise", precise).value("text", text);
  state.value("tensor", tensor).value("counts", counts);
  state.value("losses", losses).value("flags", flags).value("names", names);
  state.value("none", none).value("tensors", tensors);
  const void* const memory = tensor.data_ptr();
  state.commit();
  state.flush();
  flag = false;
  count = 0;
  large = 1;
  ratio = 0;
  precise = 0;
  text = "";
  tensor.zero_();
  counts = {};
  losses = {1, 2, 3};
  flags = {};
  names = {"x"};
  none = {"y"};
  tensors = {};
  state.restore();
  EXPECT_TRUE(flag);
  EXPECT_EQ(count, -3);
  EXPECT_EQ(large, ~uint64_t{0});
  EXPECT_EQ(ratio, 0.1F);
  EXPECT_EQ(precise, 0.1);
  EXPECT_EQ(text, std::string("any \0\xff bytes", 12));
  EXPECT_TRUE(tensor.equal(torch::arange(6).reshape({2, 3})));
  EXPECT_EQ(tensor.data_ptr(), memory);
  EXPECT_THAT(counts, ElementsAre(1, -2));
  EXPECT_THAT(losses, ElementsAre(0.3, 0.1));
  EXPECT_THAT(flags, ElementsAre(true, false));
  EXPECT_THAT(names, ElementsAre("a", "", "c d"));
  EXPECT_TRUE(none.empty());
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_TRUE(tensors[0].equal(torch::ones({2})));
  EXPECT_TRUE(tensors[1].equal(torch::zeros({})));
}

TEST_F(ElasticTest, SyncTakesWhatOneRankHas) {
  Training training(1 + rank());
  training.steps = rank();
  training.sampler.resume(rank(), 10 + rank());
  State state(options_);
  training.RegisterAt(state);
  const int root = size() - 1;
  state.sync(root);
  EXPECT_EQ(training.weight(), 1 + root);
  EXPECT_EQ(training.steps, root);
  EXPECT_EQ(training.sampler.epoch(), root);
  EXPECT_EQ(training.sampler.position(), 10 + root);
}

TEST_F(ElasticTest, ProgramStartedAgainGoesOnFromTheFile) {
  Training first(1);
  {
    State state(options_);
    first.RegisterAt(state);
    first.Step();
    first.steps = 1;
    state.commit();
    first.Step();
    first.steps = 2;
    state.commit();
  }
  EXPECT_EQ(checkpoint_exists(path_), rank() == 0);
  Training second(5 + rank());
  State state(options_);
  second.RegisterAt(state);
  state.restore();
  EXPECT_EQ(second.steps, 2);
  EXPECT_EQ(state.restored_commit(), 2U);
  first.Step();
  second.Step();
  EXPECT_EQ(second.weight(), first.weight());
}

TEST_F(ElasticTest, FileGetsTheCommitsThatAreDue) {
  const auto saved = [&] {
    State reader(options_);
    int64_t step = 0;
    reader.value("step", step);
    if (reader.can_restore()) reader.restore();
    return step;
  };
  int64_t step = 0;
  {
    State state(StateOptions(options_).save_every_commits(3));
    state.value("step", step);
    for (step = 1; step <= 5; ++step) state.commit();
  }
  EXPECT_EQ(saved(), 3);
  {
    State state(StateOptions(options_).save_every_commits(0));
    state.value("step", step);
    step = 6;
    state.commit();
    step = 7;
    state.commit(Save::Now);
    step = 8;
    state.commit();
  }
  EXPECT_EQ(saved(), 7);
  {
    State state(StateOptions(options_).save_every_commits(0));
    state.value("step", step);
    state.restore();
    step = 9;
    state.commit();
    state.flush();
  }
  EXPECT_EQ(saved(), 9);
  {
    State state(
        StateOptions(options_).save_every_commits(0).save_every_seconds(1e-9));
    state.value("step", step);
    state.restore();
    step = 10;
    state.commit();
    step = 11;
    state.commit(Save::Never);
  }
  EXPECT_EQ(saved(), 10);
}

TEST_F(ElasticTest, LaunchersStoreOutlivesTheRanksAndTheFile) {
  const auto store = base::CommitStore::Start("127.0.0.1");
  ASSERT_TRUE(store.ok()) << store.status();
  const StateOptions options =
      StateOptions(options_).store((*store)->address()).save_every_commits(2);
  int64_t step = 0;
  {
    State state(options);
    state.value("step", step);
    for (step = 1; step <= 3; ++step) state.commit();
  }
  State state(options);
  state.value("step", step);
  state.restore();
  EXPECT_EQ(step, 3);
  // Without it, what the disk has.
  State from_disk(options_);
  from_disk.value("step", step);
  from_disk.restore();
  EXPECT_EQ(step, 2);
  // And where the store has gone, too, with a warning.
  State lost(StateOptions(options_).store("127.0.0.1:1/secret"));
  lost.value("step", step);
  ::testing::internal::CaptureStderr();
  lost.restore();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr(rank() == 0 ? "taking the checkpoint" : ""));
  EXPECT_EQ(step, 2);
}

TEST_F(ElasticTest, StoreThatDoesNotAnswerIsNoReasonToBeginAnew) {
  State state(StateOptions().store("127.0.0.1:1/secret"));
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run(state, [] { FAIL() << "began anew"; }), 1);
  EXPECT_EQ(::testing::internal::GetCapturedStderr().empty(), rank() != 0);
}

TEST_F(ElasticTest, CommitOfSomethingElseIsRefusedByNameOnAllRanks) {
  Training training(1);
  {
    State state(options_);
    training.RegisterAt(state);
    state.commit();
  }
  const auto problem = [&](const std::function<void(State&)>& setup,
                           const std::string& name = "training") {
    State state(StateOptions(options_).name(name));
    setup(state);
    const std::string text = ErrorText([&] { state.restore(); });
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(run(state, [] { FAIL() << "went on"; }), 2);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                HasSubstr(rank() == 0 ? "does not fit" : ""));
    EXPECT_THAT(text, HasSubstr("c.pt' does not fit"));
    return text;
  };
  torch::nn::Linear wide(3, 1);
  EXPECT_THAT(problem([&](State& state) { state.model(*wide); }),
              AllOf(HasSubstr("it holds model's parameter 'weight' of Float "
                              "[1, 2]"),
                    HasSubstr("has model's parameter 'weight' of Float [1, "
                              "3]")));
  EXPECT_EQ(wide->weight.size(1), 3);
  torch::optim::Adam adam(training.model->parameters());
  EXPECT_THAT(
      problem(
          [&](State& state) { state.model(*training.model).optimizer(adam); }),
      AllOf(HasSubstr("torch::optim::SGD"), HasSubstr("torch::optim::Adam")));
  EXPECT_THAT(
      problem([&](State& state) { training.RegisterAt(state); }, "another"),
      HasSubstr("it holds training where this training has another"));
  EXPECT_THAT(problem([&](State& state) {
                training.RegisterAt(state).value("more", training.steps);
              }),
              HasSubstr("it lacks a value 'more', which this training has"));
  EXPECT_THAT(problem([&](State& state) {
                state.model(*training.model)
                    .optimizer(*training.optimizer)
                    .sampler(training.sampler);
              }),
              HasSubstr("it holds a value 'steps', which this training does "
                        "not have"));
}

TEST_F(ElasticTest, DamagedFileFallsBackOrIsNamed) {
  int64_t step = 0;
  {
    State state(options_);
    state.value("step", step);
    for (step = 1; step <= 2; ++step) {
      state.commit();
      state.flush();
    }
  }
  Damage(path_);
  {
    State state(options_);
    state.value("step", step);
    ::testing::internal::CaptureStderr();
    state.restore();
    EXPECT_EQ(step, 1);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                HasSubstr(rank() == 0 ? "taking the one before" : ""));
  }
  Damage(path_ + ".previous");
  State state(options_);
  state.value("step", step);
  EXPECT_THAT(ErrorText([&] { state.can_restore(); }),
              HasSubstr("c.pt' is damaged"));
}

TEST_F(ElasticTest, FilesOfSaveCheckpointNeedAReader) {
  torch::nn::Linear model(2, 1);
  torch::optim::SGD sgd(model->parameters(), 0.1);
  if (rank() == 0) save_checkpoint(path_, *model, sgd, "7 epochs");
  std::string progress;
  State strict(options_);
  strict.value("progress", progress);
  EXPECT_THAT(ErrorText([&] { strict.restore(); }),
              HasSubstr("it is not of an elastic::State"));
  State state(StateOptions(options_).read_other(
      [&](torch::serialize::InputArchive& archive) {
        c10::IValue saved;
        archive.read("progress", saved);
        progress = saved.toStringRef();
      }));
  state.value("progress", progress);
  state.restore();
  EXPECT_EQ(progress, "7 epochs");
}

TEST_F(ElasticTest, DiskThatFailsIsAWarningUntilTheEnd) {
  const std::string path = directory_ / "folder" / "c.pt";
  State state(StateOptions().path(path).store(""));
  int64_t step = 1;
  state.value("step", step);
  ::testing::internal::CaptureStderr();
  state.commit();
  state.commit();
  EXPECT_THAT(ErrorText([&] { state.flush(); }), HasSubstr("c.pt'"));
  const std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(told, HasSubstr(rank() == 0 ? "No such file" : ""));
  EXPECT_EQ(told.find("No such file"), told.rfind("No such file"));
  std::filesystem::create_directory(directory_ / "folder");
  state.commit();
  state.flush();
  EXPECT_EQ(std::filesystem::exists(path), rank() == 0);
}

TEST_F(ElasticTest, SignalToOneRankStopsAllAfterTheSameStep) {
  int64_t step = 0;
  State state(StateOptions().store(""));
  state.value("step", step);
  const StopSignals signals;
  state.commit();
  EXPECT_FALSE(state.should_stop());
  if (rank() == size() - 1) std::raise(SIGUSR1);
  state.agree_to_stop();
  EXPECT_FALSE(state.should_stop());
  state.commit();
  EXPECT_TRUE(state.should_stop());
  EXPECT_EQ(state.stop_signal(), SIGUSR1);
  state.flush();
}

TEST_F(ElasticTest, RunReturnsTheExitCodeOfTheProcess) {
  int64_t step = 0;
  const auto run_to = [&](int64_t end, int64_t raise_at) {
    State state(options_);
    state.value("step", step);
    step = 0;
    return run(state, [&] {
      while (step < end) {
        ++step;
        if (step == raise_at && rank() == 0) std::raise(SIGTERM);
        state.commit();
        if (state.should_stop()) return;
      }
    });
  };
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run_to(10, 3), kStoppedExitCode);
  EXPECT_EQ(step, 4);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr(rank() == 0 ? "stopped by Terminated" : ""));
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run_to(10, 0), 0);
  EXPECT_EQ(step, 10);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr(rank() == 0 ? "going on from commit 4" : ""));
}

// The last one: it ends the world.
TEST_F(ElasticTest, ZExceptionOfOneRankEndsAllWithExitCodeOne) {
  int64_t step = 0;
  State state(StateOptions().store(""));
  state.value("step", step);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run(state,
                [&] {
                  while (step < 1000) {
                    if (++step == 3 && rank() == 0) {
                      throw std::runtime_error("cannot read shard 3");
                    }
                    state.commit();
                  }
                }),
            1);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr(rank() == 0 ? "hvdlite error] cannot read shard 3"
                                    : "cannot read shard 3"));
}

}  // namespace
}  // namespace hvdlite::elastic
