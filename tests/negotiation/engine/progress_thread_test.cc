#include "negotiation/engine/progress_thread.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <atomic>
#include <latch>
#include <string>
#include <thread>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/processor.h"

namespace hvdlite::negotiation {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BackgroundThreadTest : public ::testing::Test {
 protected:
  std::string log_;
  base::Logger logger_{base::Severity::kWarning, -1,
                       [this](absl::string_view line) {
                         log_ += std::string(line.data(), line.size());
                       }};
};

TEST_F(BackgroundThreadTest, HasItsNameAndCpu) {
  const std::vector<int> allowed = support::AllowedCpus();
  std::string name(16, '\0');
  std::vector<int> cpus;
  BackgroundThread thread(
      [&] {
        pthread_getname_np(pthread_self(), name.data(), name.size());
        cpus = support::AllowedCpus();
      },
      allowed.back(), logger_);
  thread.Join();
  EXPECT_STREQ(name.c_str(), "hvdlite");
  EXPECT_THAT(cpus, ElementsAre(allowed.back()));
  EXPECT_EQ(support::AllowedCpus(), allowed);  // of this thread
  EXPECT_EQ(log_, "");
}

TEST_F(BackgroundThreadTest, ACpuThatIsNotThereIsWarnedOf) {
  bool ran = false;
  BackgroundThread thread([&] { ran = true; }, CPU_SETSIZE - 1, logger_);
  thread.Join();
  EXPECT_TRUE(ran);
  EXPECT_THAT(log_, HasSubstr("cannot be bound to CPU 1023"));
}

absl::Duration CpuTimeOfThisThread() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

TEST_F(BackgroundThreadTest, CpuTimeCountsUntilAfterItsEnd) {
  std::latch looked(1);
  std::latch computed(1);
  BackgroundThread thread(
      [&] {
        while (CpuTimeOfThisThread() < absl::Milliseconds(2)) {
        }
        computed.count_down();
        looked.wait();
      },
      std::nullopt, logger_);
  computed.wait();
  const absl::Duration running = thread.cpu_time();
  EXPECT_GE(running, absl::Milliseconds(2));
  looked.count_down();
  thread.Join();
  EXPECT_GE(thread.cpu_time(), running);
  thread.Join();  // again: nothing
}

constexpr bool kFoundNothing = false;
constexpr bool kFoundSomething = true;

TEST(NappingTest, WhoIsWokenForNothingNapsWhereOthersWait) {
  Napping napping;
  napping.Decide(kFoundNothing, /*waits=*/0);
  EXPECT_FALSE(napping.naps()) << "nobody has waited";
  napping.Decide(kFoundSomething, /*waits=*/1);
  EXPECT_FALSE(napping.naps()) << "it was not woken for nothing";
  napping.Decide(kFoundNothing, /*waits=*/1);
  EXPECT_FALSE(napping.naps()) << "nobody has waited since";
  napping.Decide(kFoundNothing, /*waits=*/2);
  EXPECT_TRUE(napping.naps());
}

TEST(NappingTest, LastsUntilNobodyHasWaitedForANap) {
  Napping napping;
  napping.Decide(kFoundNothing, /*waits=*/1);
  napping.Decide(kFoundSomething, /*waits=*/5);
  EXPECT_TRUE(napping.naps()) << "others wait, whatever it finds itself";
  napping.Decide(kFoundSomething, /*waits=*/6);
  EXPECT_TRUE(napping.naps());
  napping.Decide(kFoundNothing, /*waits=*/6);
  EXPECT_FALSE(napping.naps());
  napping.Decide(kFoundSomething, /*waits=*/7);
  EXPECT_FALSE(napping.naps()) << "a nap that is over begins anew";
}

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
