#include "negotiation/engine/background_thread.h"

#include <pthread.h>
#include <sched.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "negotiation/engine/time_slice.h"

namespace hvdlite::negotiation {
namespace {

// Short, so that the thread gets its core from a computation soon after it is
// woken.
constexpr absl::Duration kSlice = absl::Microseconds(100);

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
  logger.Warning(absl::StrCat(
      "the coordinator's thread cannot be bound to CPU ", cpu, " (",
      std::strerror(error), "); it runs wherever this process may"));
}

}  // namespace

BackgroundThread::BackgroundThread(std::function<void()> body,
                                   std::optional<int> cpu,
                                   const base::Logger& logger) {
  thread_ = std::thread([this, body = std::move(body), cpu, &logger] {
    pthread_setname_np(pthread_self(), "hvdlite");
    base::RequestTimeSlice(kSlice);
    if (cpu.has_value()) BindThisThread(*cpu, logger);
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

}  // namespace hvdlite::negotiation
