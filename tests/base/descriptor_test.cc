#include "base/descriptor.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/testing/fakes/temporary_directory.h"

namespace hvdlite::base {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ReadFileTest, ReturnsTheWholeFile) {
  const trainers::TemporaryDirectory directory;
  const std::string path = directory / "bytes";
  std::string bytes(300'000, 'x');  // several reads
  bytes[7] = '\0';
  {
    const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT, 0600));
    ASSERT_EQ(WriteAll(file.get(), bytes), 0);
  }
  EXPECT_EQ(ReadFile(path).value(), bytes);
  // The size of this file reads as 0.
  EXPECT_THAT(ReadFile("/proc/self/status").value(), StartsWith("Name:"));
}

TEST(ReadFileTest, UnreadableFileIsAnErrorWithTheReason) {
  const trainers::TemporaryDirectory directory;
  const absl::Status missing = ReadFile((directory / "none").string()).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()),
              HasSubstr((directory / "none").string()));
  EXPECT_THAT(std::string(ReadFile(directory.path()).status().message()),
              HasSubstr("Is a directory"));
}

}  // namespace
}  // namespace hvdlite::base
