// The working directory changes after a path is given and before it is used.
#include <gtest/gtest.h>
#include <hvdlite/hvdlite.h>
#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace hvdlite {
namespace {

namespace fs = std::filesystem;

// Ranks start in one directory and change to another one.
class WorkingDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = fs::current_path();
    directory_ = broadcast_object(
        (fs::temp_directory_path() /
         ("working_directory_test." + std::to_string(getpid())))
            .string(),
        0);
    if (rank() == 0) fs::create_directories(directory_ / "other");
    barrier();
    fs::current_path(directory_);
  }
  void TearDown() override {
    fs::current_path(before_);
    barrier();
    if (rank() == 0) fs::remove_all(directory_);
  }

  static void GoElsewhere() { fs::current_path("other"); }
  // On rank 0 only.
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& file : fs::recursive_directory_iterator(directory_)) {
      if (!file.is_directory()) {
        names.push_back(fs::relative(file.path(), directory_).string());
      }
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  void ExpectFiles(const std::vector<std::string>& names) const {
    barrier();
    if (rank() == 0) {
      EXPECT_EQ(Files(), names);
    }
    barrier();
  }

 private:
  fs::path before_;
  fs::path directory_;
};

TEST_F(WorkingDirectoryTest, ATimelineIsMergedWhereItWasStarted) {
  start_timeline("trace.json");
  barrier();
  GoElsewhere();
  stop_timeline();
  ExpectFiles({"trace.json"});
}

TEST_F(WorkingDirectoryTest, ACheckpointWriterSavesWhereItWasMade) {
  if (rank() == 0) {
    // Large enough that writing takes a while.
    const at::Tensor large = at::ones({1 << 20});
    CheckpointWriter writer("run.pt");
    for (int save = 0; save < 2; ++save) {
      writer.save([&](torch::serialize::OutputArchive& archive) {
        archive.write("large", large);
      });
      if (save == 0) GoElsewhere();
    }
    EXPECT_TRUE(writer.wait());
  }
  ExpectFiles({"run.pt", "run.pt.previous"});
}

TEST_F(WorkingDirectoryTest, ElasticStateCommitsWhereItWasMade) {
  at::Tensor value = at::ones({1 << 18});
  elastic::State state(elastic::StateOptions().path("run.pt"));
  state.value("value", value);
  state.commit();
  state.flush();
  GoElsewhere();
  state.commit();
  state.flush();
  ExpectFiles({"run.pt", "run.pt.previous"});

  value.zero_();
  elastic::State again(elastic::StateOptions().path("../run.pt"));
  again.value("value", value);
  fs::current_path("/");
  EXPECT_TRUE(again.can_restore());
  again.restore();
  EXPECT_EQ(value.sum().item<int>(), 1 << 18);
}

}  // namespace
}  // namespace hvdlite
