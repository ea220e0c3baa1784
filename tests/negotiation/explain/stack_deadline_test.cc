// The stack of a thread if the handler, or the lookup of names, does not
// return.
#include <dlfcn.h>
#include <execinfo.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "negotiation/explain/explainer.h"

namespace {

std::atomic<bool> unwinder_hangs{false};
std::atomic<bool> linker_hangs{false};

void WaitWhile(const std::atomic<bool>& hangs) {
  while (hangs) sched_yield();
}

}  // namespace

// This function replaces the C library's.
extern "C" int backtrace(void** frames, int size) {
  using Backtrace = int(void**, int);
  static auto* const real =
      reinterpret_cast<Backtrace*>(dlsym(RTLD_NEXT, "backtrace"));
  WaitWhile(unwinder_hangs);
  return real(frames, size);
}

extern "C" int dladdr(const void* address, Dl_info* info) noexcept {
  using Dladdr = int(const void*, Dl_info*);
  static auto* const real =
      reinterpret_cast<Dladdr*>(dlsym(RTLD_NEXT, "dladdr"));
  WaitWhile(linker_hangs);
  return real(address, info);
}

namespace hvdlite::internal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

pid_t ThisThread() { return static_cast<pid_t>(syscall(SYS_gettid)); }

TEST(StackDeadlineTest, HandlerThatHangsIsNotAwaited) {
  const base::SteadyClock clock;
  const Explainer explainer(clock, absl::Seconds(10));
  std::atomic<pid_t> thread{0};
  std::atomic<bool> ends{false};
  std::thread user([&] {
    thread = ThisThread();
    while (!ends) sched_yield();
  });
  while (thread == 0) sched_yield();
  unwinder_hangs = true;
  std::string stack;
  // The thread may have no core yet.
  do {
    stack = StackOf(thread);
  } while (stack.find("does not react") != std::string::npos);
  EXPECT_THAT(stack, HasSubstr("the handler that takes it has not come back"));
  // The handler may still write to the capture.
  EXPECT_THAT(StackOf(thread), HasSubstr("has not come back"));
  unwinder_hangs = false;
  do {
    stack = StackOf(thread);
  } while (stack.find("#0 ") == std::string::npos);
  ends = true;
  user.join();
}

TEST(StackDeadlineTest, FramesWithoutNamesInTimeAreAddresses) {
  const base::SteadyClock clock;
  const Explainer explainer(clock, absl::Seconds(10));
  linker_hangs = true;
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(StackOf(ThisThread()),
                AllOf(HasSubstr("#0 ? (at 0x"),
                      HasSubstr("its name could not be looked up in time"),
                      Not(HasSubstr("StackOf"))));
  }
  linker_hangs = false;
  std::string stack;
  do {
    stack = StackOf(ThisThread());
  } while (stack.find("StackOf") == std::string::npos);
}

}  // namespace
}  // namespace hvdlite::internal
