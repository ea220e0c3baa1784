#include "negotiation/engine/progress_thread.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <atomic>
#include <latch>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/engine/progress_loop.h"
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
  EXPECT_EQ(support::AllowedCpus(), allowed);  // the CPUs of this thread
  EXPECT_EQ(log_, "");
}

TEST_F(BackgroundThreadTest, MissingCpuCausesAWarning) {
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

TEST_F(BackgroundThreadTest, CpuTimeIsKeptAfterItsEnd) {
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
  thread.Join();  // a second call does nothing
}

// `looks`: whether the background thread has found something, and whether
// application threads have waited.
std::vector<bool> NapsAfter(std::vector<std::pair<bool, bool>> looks) {
  std::vector<bool> naps = {false};
  for (const auto& [found, waited] : looks) {
    naps.push_back(ProgressLoop::Naps(naps.back(), found, waited));
  }
  naps.erase(naps.begin());
  return naps;
}

TEST(NapTest, ThreadNapsAfterAUselessWakeUpIfOthersWait) {
  EXPECT_THAT(NapsAfter({{false, false}, {true, true}, {false, false}}),
              ElementsAre(false, false, false));
  EXPECT_THAT(NapsAfter({{false, true}}), ElementsAre(true));
}

TEST(NapTest, NapsEndAfterOneWithoutAWaiter) {
  EXPECT_THAT(NapsAfter({{false, true}, {true, true}, {true, true}}),
              ElementsAre(true, true, true))
      << "others wait, whatever the thread finds";
  EXPECT_THAT(NapsAfter({{false, true}, {false, false}, {true, true}}),
              ElementsAre(true, false, false))
      << "naps begin again after their end";
}

TEST(WakeEventTest, SignalBeforeSleepIsNotLost) {
  WakeEvent event;
  event.Signal();
  event.Signal();
  event.Sleep({}, absl::InfiniteDuration());  // returns immediately
  event.Drain();
  EXPECT_FALSE(event.signalled());
}

// Signals and drains run at the same time. Every signal must end a sleep, and
// no signal may be left at the end that would end later sleeps.
TEST(WakeEventTest, NoSignalIsLostOrLeftOver) {
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
      << "an old signal would end every sleep";
}

TEST(WakeEventTest, DrainDuringASignalLeavesNoSignal) {
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
        << "an old signal would end every sleep";
  }
}

}  // namespace
}  // namespace hvdlite::negotiation
