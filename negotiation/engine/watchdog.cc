#include "negotiation/engine/watchdog.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/contain_exceptions.h"
#include "base/fixed_point.h"

namespace hvdlite::negotiation {

Watchdog::Watchdog(const base::Clock& clock, absl::Duration deadline,
                   std::function<void(const std::string& what)> on_stuck,
                   Slowness slowness)
    : clock_(clock),
      deadline_(deadline),
      on_stuck_(std::move(on_stuck)),
      slowness_(std::move(slowness)) {
  if (deadline_ < absl::InfiniteDuration()) {
    thread_ = std::thread([this] { Loop(); });
  }
}

Watchdog::~Watchdog() { End(); }

void Watchdog::End() {
  {
    base::MutexLock lock(&mutex_);
    stop_ = true;
    stop_changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void Watchdog::Enter(const Call& call) {
  base::MutexLock lock(&mutex_);
  what_.assign(call.what.data(), call.what.size());
  call_ = call;
  call_.what = what_;
  inside_ = true;
  entered_ns_ = last_sign_ns_ = clock_.NowNanos();
  bytes_done_ = 0;
  told_after_ = absl::ZeroDuration();
}

void Watchdog::Feed(int64_t bytes_done) {
  base::MutexLock lock(&mutex_);
  last_sign_ns_ = clock_.NowNanos();
  bytes_done_ = bytes_done;
}

void Watchdog::Exit() {
  base::MutexLock lock(&mutex_);
  inside_ = false;
}

void Watchdog::Check() noexcept {
  std::string stuck;
  std::string slow;
  {
    base::MutexLock lock(&mutex_);
    if (!inside_ || fired_) return;
    fired_ = absl::Nanoseconds(clock_.NowNanos() - last_sign_ns_) >= deadline_;
    if (fired_) {
      stuck = std::move(what_);
    } else {
      base::ContainExceptions(
          [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { slow = SlowText(); });
    }
  }
  if (!slow.empty()) {
    base::ContainExceptions([&] { slowness_.tell(slow); });
  }
  if (!stuck.empty()) {
    base::ContainExceptions([&] { on_stuck_(stuck); });
  }
}

std::string Watchdog::SlowText() {
  const absl::Duration taken =
      absl::Nanoseconds(clock_.NowNanos() - entered_ns_);
  if (call_.bytes == 0 || taken < slowness_.after || taken < 2 * told_after_) {
    return "";
  }
  told_after_ = taken;
  const double seconds = absl::ToDoubleSeconds(taken);
  const auto megabytes = [](double bytes) {
    return base::FixedPoint(bytes * 1e-6, 3);
  };
  std::string text = absl::StrCat(call_.what, " has taken ",
                                  base::FixedPoint(seconds, 0), " s so far: ");
  const auto bytes = static_cast<double>(call_.bytes);
  const auto done = static_cast<double>(bytes_done_);
  const auto chunk = static_cast<double>(call_.chunk_bytes);
  if (bytes_done_ == 0) {
    absl::StrAppend(&text, "nothing of its ", megabytes(bytes),
                    " MB has arrived yet: a link is slower than ",
                    megabytes(std::min(bytes, chunk) / seconds),
                    " MB/s, or a rank is stopped");
  } else {
    absl::StrAppend(&text, megabytes(done), " of ", megabytes(bytes),
                    " MB are done (", megabytes(done / seconds),
                    " MB/s): slow, not stuck");
  }
  absl::StrAppend(&text, "; hvdlite_doctor --check links measures the links");
  return text;
}

void Watchdog::Loop() {
  pthread_setname_np(pthread_self(), "hvdlite-watch");
  const absl::Duration interval = std::min(deadline_ / 4, absl::Seconds(1));
  for (;;) {
    {
      base::MutexLock lock(&mutex_);
      if (!stop_) stop_changed_.WaitFor(&mutex_, interval);
      if (stop_) return;
    }
    Check();
  }
}

}  // namespace hvdlite::negotiation
