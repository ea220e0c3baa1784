#include "negotiation/engine/progress_loop.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "base/clock.h"
#include "negotiation/engine/rounds.h"

namespace hvdlite::negotiation {
namespace {

// A thread that waits spins first: its peers usually arrive soon, and it has
// nothing else to do. Then it yields this often to other threads of its core,
// and then it sleeps.
constexpr int kYieldsWhileWaiting = 200;
constexpr absl::Duration kFirstPauseWhileWaiting = absl::Microseconds(20);
constexpr absl::Duration kLongestPauseWhileWaiting = absl::Milliseconds(1);
// The background thread shares its core with the application's computation.
constexpr absl::Duration kFirstPauseInBackground = absl::Microseconds(200);
// How long the background thread lets small submissions gather if a thread on
// another rank waits. Waking up for each of a thousand submissions takes longer
// than reducing them.
constexpr absl::Duration kGatherPause = absl::Microseconds(100);
// How long one nap of the background thread is.
constexpr absl::Duration kNap = absl::Microseconds(200);
// How much longer the background thread may sleep while the data plane has to
// be pushed on. Otherwise it would be woken after every operation.
constexpr int64_t kLongestToCarryOnNs = 10'000'000;

// If a channel has descriptors, no pause needs a limit.
Backoff::Options Pauses(Backoff::Options polling, bool has_descriptors) {
  if (has_descriptors) {
    polling.first = polling.longest = absl::InfiniteDuration();
  }
  return polling;
}

}  // namespace

ProgressLoop::ProgressLoop(const CoordinatorOptions& options,
                           const CoordinatorEnvironment& environment,
                           OperationTable& operations, Hooks hooks)
    : options_(options),
      environment_(environment),
      operations_(operations),
      broken_(hooks.broken),
      wake_descriptors_(environment.channel.wake_descriptors()),
      rounds_(std::make_unique<Rounds>(options.config, environment, operations,
                                       wake_, std::move(hooks))),
      background_(std::make_unique<BackgroundThread>(
          [this] { RunInBackground(); }, options.coordinator_cpu,
          environment.logger)) {}

ProgressLoop::~ProgressLoop() = default;

// ---- The progress lock.

bool ProgressLoop::AcquireUnless(absl::FunctionRef<bool()> done,
                                 absl::Duration timeout, absl::Duration spin) {
  const base::SteadyClock clock;
  const int64_t start_ns = clock.NowNanos();
  base::MutexLock lock(&mutex_);
  ++waiters_;
  while (held_ && !done()) {
    const absl::Duration waited =
        absl::Nanoseconds(clock.NowNanos() - start_ns);
    if (waited >= timeout) break;
    if (waited < spin) {
      mutex_.Unlock();
      mutex_.Lock();
    } else {
      changed_.WaitFor(&mutex_, timeout - waited);
    }
  }
  --waiters_;
  if (held_ || done()) {
    // The background thread lets waiting threads go first.
    if (waiters_ == 0) changed_.NotifyAll();
    return false;
  }
  held_ = true;
  return true;
}

bool ProgressLoop::TryAcquire() {
  base::MutexLock lock(&mutex_);
  return !std::exchange(held_, true);
}

bool ProgressLoop::AcquireInBackground() {
  base::MutexLock lock(&mutex_);
  while ((held_ || waiters_ > 0) && !stopped_) changed_.Wait(&mutex_);
  if (stopped_) return false;
  held_ = true;
  return true;
}

void ProgressLoop::Release() {
  base::MutexLock lock(&mutex_);
  held_ = false;
  changed_.NotifyAll();
}

void ProgressLoop::Recheck() {
  base::MutexLock lock(&mutex_);
  if (waiters_ > 0) changed_.NotifyAll();
}

bool ProgressLoop::wanted() const {
  base::MutexLock lock(&mutex_);
  return waiters_ > 0;
}

// ---- Application threads.

bool ProgressLoop::RunUntil(absl::FunctionRef<bool()> done,
                            absl::Duration timeout) {
  const int64_t start_ns = environment_.clock.NowNanos();
  const auto time_left = [&] {
    if (timeout == absl::InfiniteDuration()) return timeout;
    return timeout -
           absl::Nanoseconds(environment_.clock.NowNanos() - start_ns);
  };
  if (!TryAcquire()) {
    // The thread that holds the lock may be asleep.
    if (application_runs_) Wake();
    if (!AcquireUnless(done, time_left(), options_.spin_while_waiting)) {
      // The background thread held the lock, and may not have seen what became
      // urgent meanwhile.
      if (!done()) Wake();
      return done();
    }
  }
  int64_t idle_ns = 0;
  application_runs_ = true;
  Run([&] {
    ++application_waits_;
    DriveUntil(done, time_left, idle_ns);
    HandBack(done());
  });
  application_ns_ += environment_.clock.NowNanos() - start_ns - idle_ns;
  application_runs_ = false;
  Release();
  return done();
}

bool ProgressLoop::Run(absl::FunctionRef<void()> work) noexcept {
  if (broken()) return false;
  try {
    work();
  } catch (...) {
    threw_ = true;
    rounds_->AbortForException();
  }
  return !broken();
}

bool ProgressLoop::Drive() {
  const Rounds::Found found = rounds_->Drive();
  if (found == Rounds::Found::kDecision) Recheck();
  return found != Rounds::Found::kNothing;
}

void ProgressLoop::DriveUntil(absl::FunctionRef<bool()> done,
                              absl::FunctionRef<absl::Duration()> time_left,
                              int64_t& idle_ns) {
  const absl::Duration spin = options_.spin_while_waiting;
  rounds_->set_waits(Negotiator::Waits::kBegins);
  rounds_->set_spin(spin);
  const base::SteadyClock stopwatch;  // real time, whatever clock the world has
  int64_t progress_ns = stopwatch.NowNanos();
  Backoff backoff(Pauses({.yields = kYieldsWhileWaiting,
                          .first = kFirstPauseWhileWaiting,
                          .longest = kLongestPauseWhileWaiting},
                         !wake_descriptors_.empty()));
  while (!done() && !broken() && time_left() > absl::ZeroDuration()) {
    if (Drive()) {
      backoff.Reset();
      progress_ns = stopwatch.NowNanos();
      continue;
    }
    if (absl::Nanoseconds(stopwatch.NowNanos() - progress_ns) < spin) continue;
    rounds_->set_waits(Negotiator::Waits::kLonger);
    const absl::Duration pause = backoff.Next();
    if (pause == absl::ZeroDuration()) {
      sched_yield();
    } else if (environment_.channel.PrepareToSleep()) {
      const int64_t asleep_ns = environment_.clock.NowNanos();
      wake_.Sleep(wake_descriptors_,
                  std::min(rounds_->PauseUntilDeadline(pause), time_left()));
      idle_ns += environment_.clock.NowNanos() - asleep_ns;
    }
  }
}

// Wakes the background thread if it would sleep too long. While it sleeps, it
// does not know what was taken in or executed here. The channel wakes it only
// if armed again. Submissions wake it only if it knows that a thread waits for
// them. And the data plane may have to be pushed on. While it naps, it looks
// itself.
void ProgressLoop::HandBack(bool done) {
  const bool armed = naps_ || broken() || rounds_->Arm();
  if (!armed || !done || rounds_->has_work() ||
      (rounds_->has_to_carry_on() && !naps_ &&
       background_sleeps_until_ns_ >
           environment_.clock.NowNanos() + kLongestToCarryOnNs) ||
      operations_.IsWorthWaking()) {
    Wake();
  }
  rounds_->set_waits(Negotiator::Waits::kNot);
}

// ---- The background thread.

void ProgressLoop::RunInBackground() {
  Backoff backoff(
      Pauses({.first = kFirstPauseInBackground,
              .longest = absl::Microseconds(options_.config.max_poll_pause_us)},
             !wake_descriptors_.empty()));
  const int64_t spin_ns = absl::ToInt64Nanoseconds(options_.spin);
  int64_t progress_ns = 0;  // time of the last news, if it spins
  bool woken = true;        // from its sleep, not by a timeout
  bool holds = false;
  while (holds || AcquireInBackground()) {
    bool progress = false;
    bool steps_back = false;
    bool over = false;
    bool looks_again = false;  // there may be work left
    bool naps = false;
    absl::Duration pause;
    const bool stands = Run([&] {
      rounds_->set_spin(options_.spin);
      while (!broken() && !shut_down()) {
        steps_back = wanted();
        if (steps_back || !Drive()) break;
        progress = true;
      }
      over = broken() || shut_down();
      if (over) return;
      if (progress) backoff.Reset();
      if (spin_ns > 0) {
        const int64_t now_ns = environment_.clock.NowNanos();
        if (progress) progress_ns = now_ns;
        looks_again = now_ns - progress_ns < spin_ns;
        if (looks_again) return;
      }
      pause = rounds_->PauseUntilDeadline(backoff.Next());
      background_sleeps_until_ns_ = absl::ToInt64Nanoseconds(
          absl::Nanoseconds(environment_.clock.NowNanos()) + pause);
      // A wake-up by the timeout is not a useless one.
      naps_ = Naps(
          naps_, progress || !std::exchange(woken, true),
          std::exchange(waits_seen_, application_waits_) != application_waits_);
      naps = naps_ && !steps_back;
      // A thread that takes the lock meanwhile arms the channel again at the
      // end.
      looks_again =
          steps_back || (!naps && !environment_.channel.PrepareToSleep());
    });
    Release();
    holds = false;
    if (over || !stands) break;
    if (looks_again) continue;
    if (naps) {
      holds = Nap();
      continue;
    }
    woken = wake_.Sleep(wake_descriptors_, pause);
    if (spin_ns == 0 && wake_.signalled() && operations_.MayGather()) {
      absl::SleepFor(kGatherPause);
    }
  }
}

// A thread that holds the lock meanwhile does not have to wake another thread
// when it releases the lock.
bool ProgressLoop::Nap() {
  while (!wake_.Sleep({}, kNap)) {
    if (TryAcquire()) return true;
  }
  return false;
}

// ---- The end of the loop, and other requests.

void ProgressLoop::WakeAll() {
  Recheck();
  Wake();
}

void ProgressLoop::AskEverybody() {
  rounds_->AskEverybody();
  Wake();
}

bool ProgressLoop::Abort(const absl::Status& status, absl::Duration patience) {
  if (!AcquireUnless([] { return false; }, patience, absl::ZeroDuration())) {
    return false;
  }
  Run([&] { rounds_->Abort(status, patience); });
  Release();
  return true;
}

void ProgressLoop::Stop(bool joins) {
  {
    base::MutexLock lock(&mutex_);
    stopped_ = true;
    changed_.NotifyAll();
  }
  Wake();
  if (joins) background_->Join();
}

void ProgressLoop::Close() {
  if (rounds_ == nullptr) return;
  Stop(/*joins=*/true);
  background_.reset();
  rounds_->EndWatch();  // its callbacks may still run and use `wake_`
  if (threw_) {
    (void)rounds_.release();  // it is neither used nor destroyed
    return;
  }
  if (broken()) rounds_->Abandon();
  rounds_.reset();
}

bool ProgressLoop::shut_down() const { return rounds_->shut_down(); }

absl::Duration ProgressLoop::cpu_time() const {
  return background_->cpu_time() + absl::Nanoseconds(application_ns_.load());
}

}  // namespace hvdlite::negotiation
