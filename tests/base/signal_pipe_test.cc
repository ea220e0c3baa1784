#include "base/signal_pipe.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace hvdlite::base {
namespace {

TEST(SignalPipeTest, CatchesSignalsWhileItLives) {
  SignalPipe signals;
  EXPECT_EQ(signals.Next(), std::nullopt);
  raise(SIGTERM);
  raise(SIGINT);
  EXPECT_EQ(signals.Next(), SIGTERM);
  EXPECT_EQ(signals.Next(), SIGINT);
  EXPECT_EQ(signals.Next(), std::nullopt);
}

TEST(SignalPipeTest, RestoresTheFormerActions) {
  { const SignalPipe signals; }
  EXPECT_EXIT(raise(SIGHUP), testing::KilledBySignal(SIGHUP), "");
}

TEST(SignalPipeTest, WhatWasIgnoredStaysSo) {
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
