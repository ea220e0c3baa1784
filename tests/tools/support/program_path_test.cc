#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/support/process.h"

namespace hvdlite::base {
namespace {

using ::testing::HasSubstr;

bool IsOfB(const std::string& path) {
  return path == "/b/train" || path == "./train";
}

TEST(PathOfProgramTest, IsTheFirstInPath) {
  EXPECT_EQ(PathOfProgram("train", FakeEnvironment({{"PATH", "/a:/b:"}}), IsOfB)
                .value(),
            "/b/train");
  EXPECT_EQ(PathOfProgram("train", FakeEnvironment({{"PATH", "/a::/b"}}), IsOfB)
                .value(),
            "./train");
  EXPECT_EQ(PathOfProgram("./x", FakeEnvironment({}), IsOfB).value(), "./x");
}

TEST(PathOfProgramTest, WhatIsNowhereIsAnError) {
  EXPECT_THAT(std::string(PathOfProgram(
                              "train", FakeEnvironment({{"PATH", "/a"}}), IsOfB)
                              .status()
                              .message()),
              HasSubstr("there is no train in PATH: give its path (./train)"));
}

TEST(IsExecutableTest, FoldersAndDataAreNot) {
  EXPECT_TRUE(IsExecutable("/bin/sh"));
  EXPECT_FALSE(IsExecutable("/bin"));
  EXPECT_FALSE(IsExecutable("/etc/passwd"));
}

}  // namespace
}  // namespace hvdlite::base
