#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <latch>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/engine/progress.h"
#include "tools/support/processor.h"

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

}  // namespace
}  // namespace hvdlite::negotiation
