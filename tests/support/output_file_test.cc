#include "support/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/input_error.h"
#include "tests/testing/fakes/test_files.h"

namespace hvdlite::support {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class OutputFileTest : public ::testing::Test {
 protected:
  static std::string Check(const std::vector<Output>& outputs, bool overwrite,
                           const std::vector<std::string>& inputs = {}) {
    return std::string(CheckOutputs(outputs, overwrite, inputs).message());
  }

  const timeline::TemporaryDirectory directory_;
  const std::string file_ = directory_.File("file");
};

TEST_F(OutputFileTest, ExistingFileNeedsOverwrite) {
  EXPECT_EQ(Check({{"--report", file_}}, false), "");
  EXPECT_FALSE(std::filesystem::exists(file_));
  timeline::WriteFile(file_, "old");
  EXPECT_TRUE(
      absl::IsAlreadyExists(CheckOutputs({{"--report", file_}}, false)));
  EXPECT_THAT(Check({{"--report", file_}}, false),
              AllOf(HasSubstr(file_), HasSubstr("--report"),
                    HasSubstr("--overwrite"), HasSubstr("another file")));
  EXPECT_THAT(Check({{"--a", file_, false, "--resume continues it"}}, false),
              HasSubstr("--resume continues it, --overwrite"));
  EXPECT_EQ(Check({{"--report", file_}}, true), "");
  EXPECT_EQ(Check({{"--report", file_, /*may_exist=*/true}}, false), "");
  EXPECT_THROW(RequireOutputs({{"--report", file_}}, false), InputError);
}

TEST_F(OutputFileTest, DanglingLinkCountsAsExisting) {
  std::filesystem::create_symlink(directory_.File("none"), file_);
  EXPECT_THAT(Check({{"--report", file_}}, false), HasSubstr("it exists"));
}

TEST_F(OutputFileTest, InputIsNeverReplaced) {
  timeline::WriteFile(file_, "input");
  const std::string symbolic = directory_.File("symbolic");
  const std::string hard = directory_.File("hard");
  std::filesystem::create_symlink(file_, symbolic);
  std::filesystem::create_hard_link(file_, hard);
  for (const std::string& output : {file_, symbolic, hard}) {
    EXPECT_THAT(Check({{"-o", output}}, true, {file_}),
                AllOf(HasSubstr("this command reads"),
                      HasSubstr("name another file")))
        << output;
    // A directory stands for all files in it.
    EXPECT_THAT(Check({{"-o", output}}, true, {directory_.File("")}),
                HasSubstr("this command reads"));
  }
  EXPECT_EQ(
      Check({{"-o", directory_.File("new")}}, false, {directory_.File("")}),
      "");
}

TEST_F(OutputFileTest, OutputsMustBeDifferentFiles) {
  EXPECT_THAT(
      Check({{"--json", file_}, {"--html", directory_.File("./file")}}, true),
      AllOf(HasSubstr("(--html)"), HasSubstr("--json writes")));
  EXPECT_EQ(Check({{"--json", "/dev/null"}, {"--html", "/dev/null"}}, false),
            "");
}

TEST_F(OutputFileTest, StreamsAreAlwaysAllowed) {
  for (const char* stream : {"", "-", "/dev/stdout", "/dev/null"}) {
    EXPECT_EQ(Check({{"--json", stream}}, false), "") << stream;
  }
}

TEST_F(OutputFileTest, UnwritableFileIsAnErrorBeforeTheWork) {
  EXPECT_THAT(Check({{"--json", directory_.File("")}}, true),
              HasSubstr("it is a directory"));
  EXPECT_THAT(Check({{"--json", directory_.File("none/file")}}, true),
              HasSubstr("No such file or directory"));
  EXPECT_TRUE(std::filesystem::is_empty(directory_.File("")));
}

TEST_F(OutputFileTest, WholeTextOrNothingIsWritten) {
  WriteFile(file_, "new");
  std::ifstream file(file_);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "new");
  EXPECT_THROW(WriteFile(directory_.File(""), "new"), InputError);
  EXPECT_THROW(WriteFile(directory_.File("none/file"), "new"), InputError);
  WriteFile("/dev/null", "new");
}

}  // namespace
}  // namespace hvdlite::support
