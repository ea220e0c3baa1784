#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hvdlite/checkpoint.h>
#include <hvdlite/errors.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/testing/fakes/temporary_directory.h"
#include "tests/torch_plugin/error_text.h"

namespace {

// Other threads wait in fsync() until the test sets disk_is_ready.
const std::thread::id main_thread = std::this_thread::get_id();
std::atomic<bool> disk_is_ready{true};

}  // namespace

extern "C" int fsync(int descriptor) {
  if (std::this_thread::get_id() != main_thread) disk_is_ready.wait(false);
  return static_cast<int>(syscall(SYS_fsync, descriptor));
}

namespace hvdlite {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string FileBytes(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// Makes a new file, since some file systems flush a file that is overwritten.
void WriteBytes(const std::string& file, const std::string& bytes) {
  std::filesystem::remove(file);
  std::ofstream(file, std::ios::binary) << bytes;
}

struct Training {
  explicit Training(double weight) {
    const torch::NoGradGuard no_grad;
    for (torch::Tensor& parameter : model->parameters()) {
      parameter.fill_(weight);
    }
  }

  void Step() {
    optimizer.zero_grad();
    model(torch::ones({1, 2})).square().sum().backward();
    optimizer.step();
  }
  double weight() const { return model->weight[0][0].item<double>(); }

  torch::nn::Linear model{2, 1};
  torch::optim::SGD optimizer{model->parameters(),
                              torch::optim::SGDOptions(0.01).momentum(0.9)};
};

class CheckpointTest : public ::testing::Test {
 protected:
  void Save(const Training& training, const std::string& progress = "") {
    save_checkpoint(path_, *training.model, training.optimizer, progress);
  }
  std::string Load(Training& training) {
    return load_checkpoint(path_, *training.model, training.optimizer);
  }
  // Returns the weight in the checkpoint; nothing if it cannot be loaded.
  std::optional<double> SavedWeight() {
    Training training(-1);
    try {
      Load(training);
    } catch (const c10::Error&) {
      return std::nullopt;
    }
    return training.weight();
  }
  void Damage(const std::string& file) {
    std::string bytes = FileBytes(file);
    bytes[bytes.size() / 2] ^= 1;
    WriteBytes(file, bytes);
  }

  const trainers::TemporaryDirectory directory_;
  const std::string path_ = directory_ / "c.pt";
  const std::string previous_ = path_ + ".previous";
};

TEST_F(CheckpointTest, TrainingContinuesAsIfNotInterrupted) {
  Training original(1);
  original.Step();
  original.Step();
  const std::string any_bytes("epoch 3\0\xff\x80", 10);
  Save(original, any_bytes);
  original.Step();

  Training resumed(2);
  EXPECT_EQ(Load(resumed), any_bytes);
  EXPECT_NE(resumed.weight(), original.weight());
  resumed.Step();  // wrong without the momentum
  EXPECT_EQ(resumed.weight(), original.weight());
}

TEST_F(CheckpointTest, NoFlippedBitAndNoTruncationLoadsSilently) {
  Save(Training(1));
  const std::string whole = FileBytes(path_);
  Training training(2);
  std::mt19937 random(17);  // NOLINT: the same bits in every run
  int loaded = 0;
  int unnamed = 0;
  const auto load = [&](const std::string& bytes) {
    WriteBytes(path_, bytes);
    try {
      Load(training);
      ++loaded;
    } catch (const c10::Error& error) {
      const std::string text = error.what();
      if (text.find("'" + path_ + "'") == text.npos) ++unnamed;
    }
  };
  for (int trial = 0; trial < 800; ++trial) {
    std::string damaged = whole;
    const size_t bit = random() % (whole.size() * 8);
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    load(damaged);
  }
  for (size_t size = 0; size < whole.size(); ++size) {
    load(whole.substr(0, size));
  }
  EXPECT_EQ(loaded, 0);
  EXPECT_EQ(unnamed, 0);
  EXPECT_EQ(training.weight(), 2);
}

TEST_F(CheckpointTest, PreviousIsUsedIfTheNewestIsDamagedOrMissing) {
  Save(Training(1));
  Save(Training(2));
  for (const bool gone : {false, true}) {
    gone ? static_cast<void>(std::filesystem::remove(path_)) : Damage(path_);
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(SavedWeight(), 1);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                AllOf(HasSubstr("warning"), HasSubstr("'" + path_ + "'"),
                      HasSubstr("'" + previous_ + "'"),
                      HasSubstr(gone ? "No such file" : "damaged")));
    EXPECT_TRUE(checkpoint_exists(path_));
  }
}

TEST_F(CheckpointTest, ErrorNamesBothFilesIfNeitherCanBeRead) {
  Save(Training(1));
  Save(Training(2));
  Damage(path_);
  WriteBytes(previous_, "");
  Training training(3);
  EXPECT_THAT(ErrorText([&] { Load(training); }),
              AllOf(HasSubstr("'" + path_ + "' is damaged"),
                    HasSubstr("'" + previous_ + "' is empty")));
}

TEST_F(CheckpointTest, MissingFileIsNamed) {
  Training training(1);
  EXPECT_FALSE(checkpoint_exists(path_));
  EXPECT_THAT(ErrorText([&] { Load(training); }),
              HasSubstr("there is no checkpoint '" + path_ + "'"));
}

TEST_F(CheckpointTest, NoPreviousIsKeptUnlessAskedTo) {
  const Training training(1);
  for (int i = 0; i < 2; ++i) {
    save_checkpoint(path_, *training.model, training.optimizer, "",
                    CheckpointOptions().keep_previous(false));
  }
  EXPECT_FALSE(std::filesystem::exists(previous_));
}

TEST_F(CheckpointTest, ArchivesWithoutAChecksumAreRead) {
  const Training training(5);
  torch::save(training.model, path_);
  Training loaded(1);
  load_checkpoint(path_, [&](torch::serialize::InputArchive& archive) {
    loaded.model->load(archive);
  });
  EXPECT_EQ(loaded.weight(), 5);
  // The previous checkpoint is used if LibTorch finds damage.
  std::filesystem::rename(path_, previous_);
  WriteBytes(path_, FileBytes(previous_).substr(0, 500));
  load_checkpoint(path_, [&](torch::serialize::InputArchive& archive) {
    loaded.model->load(archive);
  });
  std::filesystem::remove(previous_);
  EXPECT_THAT(ErrorText([&] { Load(loaded); }), HasSubstr("'" + path_ + "'"));
}

TEST_F(CheckpointTest, OtherContentIsAnErrorThatNamesTheFile) {
  Save(Training(1));
  const auto read_rounds = [](torch::serialize::InputArchive& archive) {
    c10::IValue value;
    archive.read("rounds", value);
  };
  EXPECT_THAT(
      ErrorText([&] { load_checkpoint(path_, read_rounds); }),
      AllOf(HasSubstr("'" + path_ + "' does not fit"), HasSubstr("rounds")));
}

TEST_F(CheckpointTest, FailedSaveIsAnErrorThatNamesFileAndReason) {
  const Training training(1);
  Save(training);
  const pid_t writer = fork();
  if (writer == 0) {
    const rlimit too_little = {1000, 1000};
    setrlimit(RLIMIT_FSIZE, &too_little);
    try {
      Save(training);
    } catch (const WorldBroken&) {
      _exit(1);
    } catch (const c10::Error& error) {
      const std::string text = error.what();
      _exit(text.find("'" + path_ + "': File too large") != text.npos ? 7 : 2);
    }
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(writer, &status, 0), writer);
  ASSERT_TRUE(WIFEXITED(status)) << "by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(SavedWeight(), 1);
  for (const auto& file :
       std::filesystem::directory_iterator(directory_.path())) {
    EXPECT_EQ(file.path(), path_);
  }
}

TEST_F(CheckpointTest, WriterSavesACopyWhileTheProgramContinues) {
  Training training(1);
  CheckpointWriter writer(path_);
  EXPECT_TRUE(writer.wait());
  disk_is_ready = false;
  writer.save(*training.model, training.optimizer);
  EXPECT_FALSE(checkpoint_exists(path_));
  training.Step();
  disk_is_ready = true;
  disk_is_ready.notify_all();
  EXPECT_TRUE(writer.wait());
  EXPECT_EQ(SavedWeight(), 1);
}

TEST_F(CheckpointTest, WriterSavesOneAfterTheOtherAndEndsWithTheLast) {
  {
    CheckpointWriter writer(path_);
    for (const double weight : {1, 2, 3}) {
      const Training training(weight);
      writer.save(*training.model, training.optimizer);
    }
  }
  EXPECT_EQ(SavedWeight(), 3);
  Damage(path_);
  EXPECT_EQ(SavedWeight(), 2);
}

TEST_F(CheckpointTest, RepeatedFailuresOfBackgroundSavesAreOneWarning) {
  const std::filesystem::path directory = directory_ / "directory";
  const std::string path = directory / "c.pt";
  const Training training(1);
  CheckpointWriter writer(path);
  const auto save = [&](bool succeeds) {
    ::testing::internal::CaptureStderr();
    writer.save(*training.model, training.optimizer);
    EXPECT_EQ(writer.wait(), succeeds);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(save(false), AllOf(HasSubstr("warning"), HasSubstr(path),
                                 HasSubstr("No such file")));
  EXPECT_EQ(save(false), "");
  std::filesystem::create_directory(directory);
  EXPECT_EQ(save(true), "");
  std::filesystem::remove_all(directory);
  EXPECT_THAT(save(false), HasSubstr("warning"));
}

TEST_F(CheckpointTest, ExceptionOfTheProgramsWriteIsThrown) {
  Save(Training(1));
  CheckpointWriter writer(path_);
  EXPECT_THROW(writer.save([](torch::serialize::OutputArchive&) {
    throw std::invalid_argument("mine");
  }),
               std::invalid_argument);
  EXPECT_TRUE(writer.wait());
  EXPECT_EQ(SavedWeight(), 1);
}

}  // namespace
}  // namespace hvdlite
