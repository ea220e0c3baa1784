#include "negotiation/engine/progress_thread.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/contain_exceptions.h"

namespace hvdlite::negotiation {
namespace {

// See sched_setattr(2). The C library has neither this nor the calls, and the
// kernel's header conflicts with <sched.h>.
struct SchedulingAttributes {
  uint32_t size = sizeof(SchedulingAttributes);
  uint32_t policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime_ns = 0;  // the time slice, under the default policy
  uint64_t deadline_ns = 0;
  uint64_t period_ns = 0;
};

bool GetScheduling(SchedulingAttributes* attributes) {
  return syscall(SYS_sched_getattr, 0, attributes, sizeof *attributes, 0) == 0;
}

// Asks for time slices of this length (0.1 ms to 100 ms) for the calling
// thread. When it wakes up, a thread with short slices gets a core sooner from
// threads that compute. This needs no privileges. False if the kernel does not
// support it (Linux before 6.12, or another scheduling policy than the
// default).
bool RequestTimeSlice(absl::Duration slice) {
  SchedulingAttributes attributes;
  if (!GetScheduling(&attributes) || attributes.policy != SCHED_OTHER)
    return false;
  attributes.runtime_ns =
      static_cast<uint64_t>(absl::ToInt64Nanoseconds(slice));
  if (syscall(SYS_sched_setattr, 0, &attributes, 0) != 0) return false;
  SchedulingAttributes now;
  return GetScheduling(&now) && now.runtime_ns == attributes.runtime_ns;
}

// The slice is short, so that the thread gets its core from a computation soon
// after it is woken.
constexpr absl::Duration kSlice = absl::Microseconds(100);

constexpr absl::Duration kPauseWithoutMemory = absl::Milliseconds(1);

int64_t CpuNanos(clockid_t clock) {
  timespec time = {};
  if (clock_gettime(clock, &time) != 0) return 0;
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void BindThisThread(int cpu, const base::Logger& logger) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(cpu, &cpus);
  const int error = pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
  if (error == 0) return;
  logger.Warning(absl::StrCat("the background thread cannot be bound to CPU ",
                              cpu, " (", std::strerror(error),
                              "); it runs on any CPU of this process"));
}

}  // namespace

BackgroundThread::BackgroundThread(std::function<void()> body,
                                   std::optional<int> cpu,
                                   const base::Logger& logger) {
  thread_ = std::thread([this, body = std::move(body), cpu, &logger] {
    pthread_setname_np(pthread_self(), "hvdlite");
    RequestTimeSlice(kSlice);
    if (cpu.has_value()) {
      base::ContainExceptions([&] { BindThisThread(*cpu, logger); });
    }
    body();
    base::MutexLock lock(&mutex_);
    runs_ = false;
    cpu_ns_at_end_ = CpuNanos(CLOCK_THREAD_CPUTIME_ID);
  });
  pthread_getcpuclockid(thread_.native_handle(), &cpu_clock_);
}

void BackgroundThread::Join() {
  if (thread_.joinable()) thread_.join();
}

absl::Duration BackgroundThread::cpu_time() const {
  base::MutexLock lock(&mutex_);
  return absl::Nanoseconds(runs_ ? CpuNanos(cpu_clock_) : cpu_ns_at_end_);
}

WakeEvent::WakeEvent() : descriptor_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!descriptor_.valid()) {
    throw std::system_error(errno, std::generic_category(), "eventfd");
  }
}

void WakeEvent::Signal() {
  if (signalled_.exchange(true)) return;
  const uint64_t one = 1;
  // This cannot fail: the counter never reaches its limit.
  [[maybe_unused]] const ssize_t written = write(descriptor_.get(), &one, sizeof one);
}

void WakeEvent::Drain() {
  if (!signalled_.load()) return;
  // The descriptor is read first. A signal that comes in between finds
  // `signalled_` set and writes nothing; its data is visible after the
  // exchange. If there is nothing to read, the signaller is about to write.
  // Clearing its signal now would leave the descriptor readable for ever.
  uint64_t count;
  if (read(descriptor_.get(), &count, sizeof count) != sizeof count) return;
  signalled_.exchange(false);
}

bool WakeEvent::Sleep(absl::Span<const int> descriptors,
                      absl::Duration timeout) const noexcept {
  absl::InlinedVector<pollfd, 8> watched;
  const bool has_room = base::ContainExceptions(
      [&] { watched.reserve(descriptors.size() + 1); });
  if (!has_room) {
    absl::SleepFor(std::min(timeout, kPauseWithoutMemory));
    return true;
  }
  watched.push_back({descriptor_.get(), POLLIN, 0});
  for (const int descriptor : descriptors) {
    watched.push_back({descriptor, POLLIN, 0});
  }
  const timespec pause = absl::ToTimespec(timeout);
  return ppoll(watched.data(), watched.size(),
               timeout == absl::InfiniteDuration() ? nullptr : &pause,
               nullptr) != 0;
}

}  // namespace hvdlite::negotiation
