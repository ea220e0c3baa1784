#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/commit_store.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "tests/torch_plugin/error_text.h"

namespace hvdlite::elastic {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A training. All ranks have their own copy of it, equal or not.
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
  // Only rank 0 writes, so every rank may have its own directory.
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
              HasSubstr("no commit to restore"));
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

TEST_F(ElasticTest, EachRankContinuesWithItsOwnBuffers) {
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
  state.sync(size() - 1);  // this does not restore the ranks' own buffers
  expect(2 + size());
  state.commit();  // all ranks have the same buffers
  fill(-1);
  state.restore();
  expect(2 + size());
}

bool Equal(const torch::Tensor& a, const torch::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.equal(b);
}
bool Equal(const std::vector<torch::Tensor>& a,
           const std::vector<torch::Tensor>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const auto& one, const auto& other) { return Equal(one, other); });
}
template <typename Value>
bool Equal(const Value& a, const Value& b) {
  return a == b;
}

TEST_F(ElasticTest, ValuesOfAllKindsComeBack) {
  State state(options_);
  std::vector<std::function<void()>> changes;
  std::vector<std::function<void()>> checks;
  const auto add = [&](const std::string& name, auto committed, auto other) {
    using Value = decltype(committed);
    const auto value = std::make_shared<Value>(committed);
    state.value(name, *value);
    changes.push_back([=] { *value = other; });
    checks.push_back(
        [=] { EXPECT_TRUE(Equal(*value, Value(committed))) << name; });
  };
  add("a flag", true, false);
  add("count", -3, 0);
  add("large", ~uint64_t{0}, uint64_t{1});
  add("ratio", 0.1F, 0.0F);
  add("precise", 0.1, 0.0);
  add("text", std::string("any \0\xff bytes", 12), std::string());
  add("counts", std::vector<int>{1, -2}, std::vector<int>());
  add("losses", std::vector<double>{0.3, 0.1}, std::vector<double>{1, 2, 3});
  add("flags", std::vector<bool>{true, false}, std::vector<bool>());
  add("names", std::vector<std::string>{"a", "", "c d"},
      std::vector<std::string>{"x"});
  add("none", std::vector<std::string>(), std::vector<std::string>{"y"});
  add("tensors", std::vector<torch::Tensor>{torch::ones({2}), torch::zeros({})},
      std::vector<torch::Tensor>());
  torch::Tensor tensor = torch::arange(6).reshape({2, 3});
  state.value("tensor", tensor);
  torch::Tensor undefined_later = torch::ones({2});
  state.value("undefined later", undefined_later);
  const void* const memory = tensor.data_ptr();
  state.commit();
  state.flush();
  for (const auto& change : changes) change();
  tensor.zero_();
  undefined_later = torch::Tensor();
  state.restore();
  for (const auto& check : checks) check();
  EXPECT_TRUE(tensor.equal(torch::arange(6).reshape({2, 3})));
  EXPECT_EQ(tensor.data_ptr(), memory);
  EXPECT_TRUE(undefined_later.eq(1).all().item<bool>());
}

TEST_F(ElasticTest, SyncCopiesTheStateOfOneRank) {
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

TEST_F(ElasticTest, FileGetsTheCommitsThatAreDue) {
  int64_t step = 0;
  // Runs a training that continues from the last commit. Returns the step that
  // is in the file afterwards.
  const auto saved_after = [&](const StateOptions& options, auto train) {
    {
      State state(options);
      state.value("step", step);
      if (state.can_restore()) state.restore();
      train(state);
    }
    State reader(options_);
    int64_t saved = 0;
    reader.value("step", saved);
    reader.restore();
    return saved;
  };
  const auto commit = [&](State& state, int64_t number, auto... save) {
    step = number;
    state.commit(save...);
  };
  const StateOptions seldom = StateOptions(options_).save_every_commits(0);
  EXPECT_EQ(saved_after(StateOptions(options_).save_every_commits(3),
                        [&](State& state) {
                          for (int i = 1; i <= 5; ++i) commit(state, i);
                        }),
            3);
  EXPECT_EQ(saved_after(seldom,
                        [&](State& state) {
                          commit(state, 6);
                          commit(state, 7, Save::Now);
                          commit(state, 8);
                        }),
            7);
  EXPECT_EQ(saved_after(seldom,
                        [&](State& state) {
                          commit(state, 9);
                          state.flush();
                        }),
            9);
  EXPECT_EQ(saved_after(StateOptions(seldom).save_every_seconds(1e-9),
                        [&](State& state) {
                          commit(state, 10);
                          commit(state, 11, Save::Never);
                        }),
            10);
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
  // Without it, the commit on the disk is used.
  State from_disk(options_);
  from_disk.value("step", step);
  from_disk.restore();
  EXPECT_EQ(step, 2);
  // If the store is gone, too, this is a warning.
  State lost(StateOptions(options_).store("127.0.0.1:1/secret"));
  lost.value("step", step);
  ::testing::internal::CaptureStderr();
  lost.restore();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr(rank() == 0 ? "using the checkpoint" : ""));
  EXPECT_EQ(step, 2);
}

TEST_F(ElasticTest, UnreachableStoreDoesNotRestartFromScratch) {
  State state(StateOptions().store("127.0.0.1:1/secret"));
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run(state, [] { FAIL() << "restarted from scratch"; }), 1);
  EXPECT_EQ(::testing::internal::GetCapturedStderr().empty(), rank() != 0);
}

TEST_F(ElasticTest, CommitOfAnotherTrainingIsRejectedAndChangesNothing) {
  torch::Tensor average = torch::ones({2});
  {
    Training training(1);
    State state(options_);
    training.RegisterAt(state).value("average", average);
    training.Step();
    training.sampler.next();
    training.steps = 7;
    state.commit();
  }
  average.zero_();
  Training training(5);
  training.Step();
  training.optimizer->inner().param_groups()[0].options().set_lr(0.1);
  const double weight = training.weight();
  const auto problem = [&](const std::function<void(State&)>& setup,
                           const std::string& name = "training") {
    State state(StateOptions(options_).name(name));
    setup(state);
    const std::string text = ErrorText([&] { state.restore(); });
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(run(state, [] { FAIL() << "continued"; }), 2);
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
  const auto all = [&](State& state) -> State& {
    return training.RegisterAt(state).value("average", average);
  };
  EXPECT_THAT(problem(all, "another"),
              HasSubstr("it holds training where this training has another"));
  int64_t number = 3;
  EXPECT_THAT(problem([&](State& state) { all(state).value("more", number); }),
              HasSubstr("it lacks a value 'more', which this training has"));
  EXPECT_THAT(
      problem([&](State& state) { training.RegisterAt(state); }),
      HasSubstr("it holds a value 'average', which this training does not "
                "have"));
  EXPECT_THAT(problem([&](State& state) {
                training.RegisterAt(state).value("average", number);
              }),
              HasSubstr("'average' is of another type"));
  EXPECT_EQ(training.weight(), weight);
  EXPECT_EQ(training.optimizer->inner().state().size(), 2U);
  EXPECT_EQ(training.optimizer->inner().param_groups()[0].options().get_lr(),
            0.1);
  EXPECT_EQ(training.steps, 0);
  EXPECT_EQ(training.sampler.position(), 0);
  EXPECT_TRUE(average.eq(0).all().item<bool>());
  EXPECT_EQ(number, 3);
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
                HasSubstr(rank() == 0 ? "using the previous one" : ""));
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
              HasSubstr("it was not written by elastic::State"));
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
  const std::string path = directory_ / "directory" / "c.pt";
  State state(StateOptions().path(path).store(""));
  int64_t step = 1;
  state.value("step", step);
  ::testing::internal::CaptureStderr();
  state.commit();
  EXPECT_THAT(ErrorText([&] { state.flush(); }), HasSubstr("c.pt'"));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr(rank() == 0 ? "No such file" : ""));
  std::filesystem::create_directory(directory_ / "directory");
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
              HasSubstr(rank() == 0 ? "continuing from commit 4" : ""));
}

// This is the last test, since it ends the world.
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
