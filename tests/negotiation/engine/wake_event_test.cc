#include <atomic>
#include <thread>

#include "gtest/gtest.h"
#include "negotiation/engine/progress.h"

namespace hvdlite::negotiation {
namespace {

TEST(WakeEventTest, SignalBeforeSleepIsNotLost) {
  WakeEvent event;
  event.Signal();
  event.Signal();
  event.Sleep({}, absl::InfiniteDuration());  // returns at once
  event.Drain();
  EXPECT_FALSE(event.signalled());
}

// Signals and drains at the same time: every signal ends a sleep, and in the
// end none is left over that would end all later sleeps at once.
TEST(WakeEventTest, NothingIsLostOrLeftOverBetweenThreads) {
  WakeEvent event;
  constexpr int kSignals = 20'000;
  std::atomic<int> announced{0};
  std::thread signaller([&] {
    for (int i = 0; i < kSignals; ++i) {
      ++announced;
      event.Signal();
    }
  });
  while (true) {
    event.Drain();
    if (announced == kSignals) break;
    event.Sleep({}, absl::InfiniteDuration());
  }
  signaller.join();
  event.Drain();
  EXPECT_FALSE(event.signalled());
  EXPECT_FALSE(event.Sleep({}, absl::ZeroDuration()))
      << "a signal that is over would end every sleep";
}

TEST(WakeEventTest, DrainWhileASignalIsOnItsWayLeavesNothingBehind) {
  for (int round = 0; round < 100; ++round) {
    WakeEvent event;
    std::atomic<bool> over{false};
    std::thread signaller([&] {
      for (int i = 0; i < 500; ++i) event.Signal();
      over = true;
    });
    while (!over) event.Drain();
    signaller.join();
    event.Drain();
    ASSERT_FALSE(event.Sleep({}, absl::ZeroDuration()))
        << "a signal that is over would end every sleep";
  }
}

}  // namespace
}  // namespace hvdlite::negotiation
