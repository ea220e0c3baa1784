#include "base/new_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "base/environment.h"
#include "tests/testing/fakes/test_files.h"

namespace hvdlite::base {
namespace {

using ::testing::HasSubstr;

class NewFileTest : public ::testing::Test {
 protected:
  static std::string TextOf(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  size_t Files() const {
    return static_cast<size_t>(std::distance(
        std::filesystem::directory_iterator(directory_.File("")), {}));
  }

  const timeline::TemporaryDirectory directory_;
  const std::string path_ = directory_.File("file");
};

TEST_F(NewFileTest, FileAppearsWithCommit) {
  timeline::WriteFile(path_, "old");
  {
    absl::StatusOr<NewFile> file = NewFile::Open(path_);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(file->Write("half").ok());
    EXPECT_EQ(TextOf(path_), "old");
  }
  EXPECT_EQ(TextOf(path_), "old");
  EXPECT_EQ(Files(), 1u);
  absl::StatusOr<NewFile> file = NewFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->Write("new ").ok());
  ASSERT_TRUE(file->Write("text").ok());
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(TextOf(path_), "new text");
  EXPECT_EQ(Files(), 1u);
}

TEST_F(NewFileTest, WritersOfOneFileDoNotMix) {
  absl::StatusOr<NewFile> first = NewFile::Open(path_);
  absl::StatusOr<NewFile> second = NewFile::Open(path_);
  ASSERT_TRUE(first.ok() && second.ok());
  ASSERT_TRUE(first->Write("first").ok());
  ASSERT_TRUE(second->Write("second").ok());
  ASSERT_TRUE(second->Commit().ok());
  EXPECT_EQ(TextOf(path_), "second");
  ASSERT_TRUE(first->Commit().ok());
  EXPECT_EQ(TextOf(path_), "first");
}

TEST_F(NewFileTest, LeftoverOfAnEndedProcessIsRemoved) {
  // No process has this id.
  timeline::WriteFile(path_ + ".tmp." + HostName() + ".999999999.1.0", "half");
  ASSERT_EQ(Files(), 1u);
  EXPECT_TRUE(NewFile::Open(path_).ok());
  EXPECT_EQ(Files(), 0u);
}

TEST_F(NewFileTest, OnlyRegularFilesAreReplaced) {
  const absl::Status status = NewFile::Open(directory_.File("")).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(status.message(), HasSubstr("not a regular file"));
  EXPECT_THAT(NewFile::Open(directory_.File("none/file")).status().message(),
              HasSubstr("none/file"));
}

TEST_F(NewFileTest, StreamsAreWrittenDirectly) {
  EXPECT_FALSE(IsStream(path_));
  EXPECT_FALSE(IsStream(directory_.File("")));
  for (const char* stream : {"-", "/dev/stdout", "/dev/stderr", "/dev/fd/1",
                             "/dev/null"}) {
    EXPECT_TRUE(IsStream(stream)) << stream;
  }
  const std::string pipe = directory_.File("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const Descriptor reader(open(pipe.c_str(), O_RDONLY | O_NONBLOCK));
  absl::StatusOr<NewFile> file = NewFile::Open(pipe);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->Write("text").ok());
  ASSERT_TRUE(file->Commit().ok());
  char text[8] = {};
  EXPECT_EQ(read(reader.get(), text, sizeof(text)), 4);
  EXPECT_STREQ(text, "text");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  absl::StatusOr<NewFile> nothing = NewFile::Open("/dev/null");
  ASSERT_TRUE(nothing.ok());
  EXPECT_TRUE(nothing->Write("text").ok());
  EXPECT_TRUE(nothing->Commit().ok());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST_F(NewFileTest, SameFileIsRecognizedThroughLinks) {
  timeline::WriteFile(path_, "text");
  const std::string symbolic = directory_.File("symbolic");
  const std::string hard = directory_.File("hard");
  std::filesystem::create_symlink(path_, symbolic);
  std::filesystem::create_hard_link(path_, hard);
  EXPECT_TRUE(IsSameFile(path_, path_));
  EXPECT_TRUE(IsSameFile(path_, symbolic));
  EXPECT_TRUE(IsSameFile(symbolic, hard));
  EXPECT_TRUE(IsSameFile(path_, directory_.File("./file")));
  timeline::WriteFile(directory_.File("other"), "text");
  EXPECT_FALSE(IsSameFile(path_, directory_.File("other")));
  EXPECT_TRUE(IsSameFile(directory_.File("none"), directory_.File("./none")));
  EXPECT_FALSE(IsSameFile(directory_.File("none"), path_));
  EXPECT_FALSE(
      IsSameFile(directory_.File("none"), directory_.File("other none")));
}

}  // namespace
}  // namespace hvdlite::base
