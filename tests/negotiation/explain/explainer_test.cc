// Reports of a process about itself, with real threads and signals.
#include "negotiation/explain/explainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <string>
#include <thread>

#include "base/clock.h"

namespace hvdlite::internal {

// It is not static, so that the table of dynamic symbols has its name.
__attribute__((noinline)) void WaitsInTheUsersCode(int descriptor) {
  pollfd end = {descriptor, POLLIN, 0};
  while (poll(&end, 1, /*timeout=*/-1) < 0) {
  }
}

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

pid_t ThisThread() { return static_cast<pid_t>(syscall(SYS_gettid)); }

TEST(ExplainerTest, SleepingThreadIsShownWithItsFunction) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::latch made(1);
  std::latch asked(1);
  base::SteadyClock clock;
  Explainer* explainer = nullptr;
  std::thread user([&] {
    Explainer own(clock, absl::Seconds(10));
    explainer = &own;
    made.count_down();
    WaitsInTheUsersCode(ends[0]);
    asked.wait();
  });
  made.wait();
  negotiation::Explanation explanation;
  // The thread may not have reached it yet.
  do {
    explanation = explainer->Explain();
  } while (explanation.stacks.find("WaitsInTheUsersCode") == std::string::npos);
  EXPECT_EQ(write(ends[1], "x", 1), 1);
  asked.count_down();
  user.join();
  close(ends[0]);
  close(ends[1]);
  EXPECT_THAT(explanation.stacks,
              AllOf(HasSubstr("thread of init():\n  #0 "),
                    HasSubstr("background thread: answers messages"),
                    Not(HasSubstr("TakeStack"))));
  EXPECT_LE(explanation.stacks.size(), 4096u);
}

TEST(ExplainerTest, OwnStackIsShownWithoutTheHandler) {
  base::SteadyClock clock;
  Explainer explainer(clock, absl::Seconds(10));
  const std::string stack = StackOf(ThisThread());
  EXPECT_THAT(stack, AllOf(HasSubstr("StackOf"), Not(HasSubstr("TakeStack"))));
}

TEST(ExplainerTest, EndedThreadHasNoStack) {
  base::SteadyClock clock;
  Explainer explainer(clock, absl::Seconds(10));
  pid_t ended = 0;
  std::thread([&] { ended = ThisThread(); }).join();
  EXPECT_THAT(StackOf(ended), HasSubstr("that thread has ended"));
}

TEST(ExplainerTest, SignalsAreReturnedAndNotTakenFromOthers) {
  struct sigaction before[4];
  struct sigaction action = {};
  action.sa_handler = SIG_IGN;
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(sigaction(SIGRTMAX - 1 - i, &action, &before[i]), 0);
    EXPECT_EQ(before[i].sa_handler, SIG_DFL);
  }
  base::SteadyClock clock;
  {
    Explainer explainer(clock, absl::Seconds(10));
    EXPECT_THAT(StackOf(ThisThread()), HasSubstr("no stack: the program uses"));
  }
  for (int i = 0; i < 4; ++i) {
    struct sigaction now;
    ASSERT_EQ(sigaction(SIGRTMAX - 1 - i, &before[i], &now), 0);
    EXPECT_EQ(now.sa_handler, SIG_IGN);
  }
  for (int i = 0; i < 2; ++i) {
    Explainer explainer(clock, absl::Seconds(10));
    EXPECT_THAT(StackOf(ThisThread()), HasSubstr("#0 "));
  }
}

TEST(ExplainerTest, CpuTimeCoversAtLeastTheLastWindow) {
  base::FakeClock clock;
  Explainer explainer(clock, absl::Seconds(10));
  for (int i = 0; i < 25; ++i) {
    clock.Advance(absl::Seconds(1));
    explainer.Sample();
  }
  // Samples were taken at 10 s and 20 s.
  EXPECT_EQ(explainer.Explain().process.over_ms, 15'000);
  // The time for explaining does not count.
  clock.Advance(absl::Seconds(100));
  EXPECT_EQ(explainer.Explain().process.over_ms, 100'000);
}

TEST(ExplainerTest, StoppedProcessIsSeenFromOutside) {
  base::SteadyClock clock;
  const Explainer explainer(clock, absl::Seconds(10));
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGSTOP);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  const auto sample = explainer.Look(child);
  kill(child, SIGCONT);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(sample.has_value());
  EXPECT_EQ(sample->state, 'T');
  EXPECT_FALSE(explainer.Look(child).has_value());
}

TEST(Usr2HandlerTest, IsInstalledOnceAndRemovedAfterwards) {
  std::atomic<int> asked{0};
  {
    const Usr2Handler handler([&] { ++asked; });
    const Usr2Handler second([&] { asked += 100; });
    raise(SIGUSR2);
    EXPECT_EQ(asked, 1);
  }
  struct sigaction now;
  ASSERT_EQ(sigaction(SIGUSR2, nullptr, &now), 0);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
}

TEST(Usr2HandlerTest, ProgramsOwnHandlerIsKept) {
  signal(SIGUSR2, SIG_IGN);
  std::atomic<int> asked{0};
  {
    const Usr2Handler handler([&] { ++asked; });
    raise(SIGUSR2);
  }
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(signal(SIGUSR2, SIG_DFL), SIG_IGN);
}

}  // namespace
}  // namespace hvdlite::internal
