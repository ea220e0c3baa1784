// Runs a trainer as a user does, on two ranks, cuts it within an epoch, and
// compares all that its last checkpoint holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/checkpoint.h>
#include <torch/torch.h>

#include <map>
#include <string>

#include "tests/testing/fakes/temporary_directory.h"
#include "tests/testing/run_command.h"

namespace hvdlite::trainers {
namespace {

using Tensors = std::map<std::string, torch::Tensor>;

// But for the optimizer's, whose names are of one process.
void Collect(torch::serialize::InputArchive& archive, const std::string& prefix,
             Tensors& tensors) {
  for (const std::string& key : archive.keys()) {
    torch::Tensor tensor;
    torch::serialize::InputArchive nested;
    if (archive.try_read(key, tensor)) {
      tensors[prefix + key] = tensor;
    } else if (key != "optimizer" && archive.try_read(key, nested)) {
      Collect(nested, prefix + key + ".", tensors);
    }
  }
}

// Momentum, in the order of the parameters.
void CollectMomentum(torch::serialize::InputArchive& archive,
                     Tensors& tensors) {
  torch::serialize::InputArchive optimizer;
  torch::serialize::InputArchive groups;
  torch::serialize::InputArchive group;
  torch::serialize::InputArchive states;
  archive.read("optimizer", optimizer);
  optimizer.read("state", states);
  optimizer.read("param_groups", groups);
  groups.read("param_groups/0", group);
  torch::Tensor count;
  group.read("params/size", count);
  for (int64_t i = 0; i < count.item<int64_t>(); ++i) {
    c10::IValue key;
    group.read("params/" + std::to_string(i), key);
    torch::serialize::InputArchive state;
    states.read(key.toStringRef(), state);
    state.read("momentum_buffer", tensors["momentum " + std::to_string(i)]);
  }
}

Tensors ReadCheckpoint(const std::string& path) {
  Tensors tensors;
  load_checkpoint(path, [&](torch::serialize::InputArchive& archive) {
    Collect(archive, "", tensors);
    CollectMomentum(archive, tensors);
  });
  return tensors;
}

TEST(ResumeTest, RunThatIsCutWithinAnEpochEndsWithTheSameBits) {
  const TemporaryDirectory directory;
  const std::string bin = HVDLITE_TEST_BIN_DIR;
  const std::string data = directory.path().string();
  const Finished generated =
      RunCommand(bin + "/generate_cifar10 --output " + data +
                 " --train-images 80 --test-images 10");
  ASSERT_EQ(generated.exit_code, 0) << generated.output;
  // 5 steps of an epoch.
  const auto train = [&](const std::string& flags) {
    const Finished training =
        RunCommand("OMP_NUM_THREADS=1 HVDLITE_DETERMINISTIC=1 " + kMpirun +
                   " 2 " + bin + "/train_resnet50 --arch resnet8 " +
                   "--batch-size 8 --data-dir " + data + " " + flags);
    EXPECT_EQ(training.exit_code, 0) << training.output;
    return training.output;
  };
  const std::string whole = directory / "whole.pt";
  train("--epochs 2 --checkpoint " + whole);
  const Tensors expected = ReadCheckpoint(whole);
  EXPECT_GT(expected.size(), 50U);
  // Once in each epoch.
  const std::string once = directory / "once.pt";
  const std::string twice = directory / "twice.pt";
  const std::string resumed = directory / "resumed.pt";
  train("--epochs 2 --max-steps 3 --checkpoint " + once);
  EXPECT_THAT(train("--epochs 2 --max-steps 8 --resume " + once +
                    " --checkpoint " + twice),
              ::testing::HasSubstr("resumed: 3 of 8 steps are done"));
  EXPECT_THAT(
      train("--epochs 2 --resume " + twice + " --checkpoint " + resumed),
      ::testing::HasSubstr("resumed: 8 of 10 steps are done"));
  const Tensors actual = ReadCheckpoint(resumed);
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    ASSERT_EQ(actual.count(name), 1U) << name;
    EXPECT_TRUE(actual.at(name).equal(tensor)) << name;
  }
}

}  // namespace
}  // namespace hvdlite::trainers
