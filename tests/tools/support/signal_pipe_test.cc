#include <gtest/gtest.h>
#include <signal.h>

#include "tools/support/process.h"

namespace hvdlite::base {
namespace {

// Under nohup or in a shell's background some signals are ignored.
class SignalPipeTest : public testing::Test {
 protected:
  SignalPipeTest() {
    for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) {
      signal(number, SIG_DFL);
    }
  }
};

TEST_F(SignalPipeTest, CatchesSignalsWhileItLives) {
  SignalPipe signals;
  EXPECT_EQ(signals.Next(), std::nullopt);
  raise(SIGTERM);
  raise(SIGINT);
  EXPECT_EQ(signals.Next(), SIGTERM);
  EXPECT_EQ(signals.Next(), SIGINT);
  EXPECT_EQ(signals.Next(), std::nullopt);
}

TEST_F(SignalPipeTest, RestoresTheFormerActions) {
  { const SignalPipe signals; }
  EXPECT_EXIT(raise(SIGHUP), testing::KilledBySignal(SIGHUP), "");
}

TEST_F(SignalPipeTest, WhatWasIgnoredStaysSo) {
  signal(SIGHUP, SIG_IGN);
  {
    const SignalPipe signals;
    raise(SIGHUP);
    EXPECT_EQ(signals.Next(), std::nullopt);
  }
  EXPECT_EQ(signal(SIGHUP, SIG_DFL), SIG_IGN);
}

}  // namespace
}  // namespace hvdlite::base
