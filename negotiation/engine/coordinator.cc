#include "negotiation/engine/coordinator.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/contain_exceptions.h"
#include "base/logging.h"
#include "collective/topology.h"
#include "negotiation/channel/control_channel.h"
#include "negotiation/engine/progress.h"

namespace hvdlite::negotiation {
namespace {

// A thread that waits looks again at once (its peers usually are about to
// arrive, and it has nothing else to do), then this often after others that
// share its core, then sleeps.
constexpr int kYieldsWhileWaiting = 200;
constexpr absl::Duration kFirstPauseWhileWaiting = absl::Microseconds(20);
constexpr absl::Duration kLongestPauseWhileWaiting = absl::Milliseconds(1);
// The background thread shares its core with the application's computation.
constexpr absl::Duration kFirstPauseInBackground = absl::Microseconds(200);
// How long the background thread lets small submissions gather, where somebody
// on another rank waits, before it takes them in: waking up for each of a
// thousand takes longer than reducing them.
constexpr absl::Duration kGatherPause = absl::Microseconds(100);
// How long the background thread naps at a time while the application waits
// again and again.
constexpr absl::Duration kNap = absl::Microseconds(200);
// How long the background thread may sleep on while there is something to carry
// on, rather than being woken after every operation.
constexpr int64_t kLongestToCarryOnNs = 10'000'000;
// How long a shutdown whose time is up waits for a batch to end.
constexpr absl::Duration kPatienceAtShutdown = absl::Seconds(1);

// "rank 3 (host)".
std::string NameOfRank(const collective::Topology& topology) {
  return absl::StrCat("rank ", topology.rank, " (",
                      topology.host_of_rank[topology.rank], ")");
}

absl::Status ClosedError() {
  return absl::UnavailableError("hvdlite::shutdown() has been called");
}

}  // namespace

// While it lives, Close() does not end anything.
class Coordinator::Use {
 public:
  // Close() first sets `closed_`, then looks at `users_`; here it is the other
  // way round.
  explicit Use(Coordinator& coordinator) : coordinator_(coordinator) {
    coordinator_.users_.fetch_add(1);
    open_ = !coordinator_.closed_.load();
  }
  ~Use() {
    if (coordinator_.users_.fetch_sub(1) != 1 || !coordinator_.closed_.load()) {
      return;
    }
    base::MutexLock lock(&coordinator_.mutex_);
    coordinator_.unused_.NotifyAll();
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  bool open() const { return open_; }

 private:
  Coordinator& coordinator_;
  bool open_;
};

Coordinator::Coordinator(const CoordinatorOptions& options,
                         CoordinatorEnvironment environment)
    : options_(options),
      environment_(std::move(environment)),
      no_memory_(absl::UnavailableError(absl::StrCat(
          NameOfRank(environment_.topology),
          " has no memory left to coordinate with the other ranks; give its "
          "process more, or run fewer ranks on its host"))),
      stuck_(absl::UnavailableError(
          absl::StrCat(NameOfRank(environment_.topology),
                       " has not come back from a call of the data plane, and "
                       "has no memory left to say more"))),
      wake_descriptors_(environment_.channel.wake_descriptors()),
      operations_(environment_.topology.rank, environment_.topology.size,
                  options_.config.min_batch_bytes, environment_.clock),
      progress_(std::make_unique<Progress>(
          options_.config, environment_, operations_,
          Progress::Hooks{
              .no_memory = no_memory_,
              .broken = broken_,
              .break_world =
                  [this](const absl::Status& status) { Break(status); },
              .come_to_end = [this] { return ComeToEnd(); },
              .stuck = [this](const std::string& what) { OnStuck(what); }})),
      background_(std::make_unique<BackgroundThread>(
          [this] { BackgroundLoop(); }, options_.coordinator_cpu,
          environment_.logger)) {}

Coordinator::~Coordinator() { Close(); }

void Coordinator::Break(const absl::Status& status) noexcept {
  absl::Status why = status;
  if (!absl::IsUnavailable(why)) {
    why = no_memory_;
    base::ContainExceptions(
        [&] { why = absl::UnavailableError(status.message()); });
  }
  {
    base::MutexLock lock(&mutex_);
    if (!why_broken_.ok()) return;
    why_broken_ = why;
  }
  broken_ = true;
  base::ContainExceptions([&] {
    // What follows from this rank's end must not look like its cause.
    const std::optional<std::string> left = operations_.left_because();
    environment_.logger.Error(
        left.has_value() ? absl::StrCat(why.message(), " (after: ", *left, ")")
                         : why.message());
  });
  base::ContainExceptions([&] {
    if (environment_.ended) environment_.ended(why);
  });
  operations_.Fail(why, interrupted_);
  progress_->lock().Recheck();
  progress_->wake().Signal();
}

void Coordinator::OnStuck(const std::string& what) noexcept {
  interrupted_ = true;
  absl::Status status = stuck_;
  base::ContainExceptions([&] {
    status = absl::UnavailableError(absl::StrCat(
        NameOfRank(environment_.topology), " has not come back from ", what,
        " for ",
        absl::FormatDuration(
            base::SecondsOrNever(options_.config.watchdog_seconds)),
        "; another rank has probably died or been stopped, or a link is cut"));
  });
  Break(status);
  if (application_coordinates_ && environment_.stuck) {
    environment_.stuck(status);
  }
}

bool Coordinator::ComeToEnd() {
  if (!shutting_down_) return false;
  if (at_end_) at_end_();
  return true;
}

absl::StatusOr<std::shared_ptr<const Completion>> Coordinator::Submit(
    Operation operation) {
  const Use use(*this);
  if (!use.open()) return ClosedError();
  const bool caller_waits = operation.caller_waits;
  bool worth_waking = false;
  auto completion = operations_.Submit(std::move(operation), &worth_waking);
  if (worth_waking && !caller_waits) progress_->wake().Signal();
  return completion;
}

absl::StatusOr<PreparedPtr> Coordinator::Prepare(Operation operation,
                                                 Owner owner) {
  const Use use(*this);
  if (!use.open()) return ClosedError();
  return operations_.Prepare(std::move(operation), owner);
}

absl::Status Coordinator::SubmitPrepared(
    absl::Span<const PreparedPtr> operations, bool caller_waits) {
  const Use use(*this);
  if (!use.open()) return ClosedError();
  bool worth_waking = false;
  absl::Status status = operations_.SubmitPrepared(operations, &worth_waking);
  if (worth_waking && !caller_waits) progress_->wake().Signal();
  return status;
}

absl::StatusOr<collective::TensorMemory> Coordinator::AllocateTensors(
    size_t bytes) {
  const Use use(*this);
  if (!use.open()) return ClosedError();
  return environment_.communicator.AllocateTensors(bytes);
}

void Coordinator::AskEverybody() { progress_->AskEverybody(); }

// ---- Waiting.

absl::Status Coordinator::Wait(const Completion& completion) {
  WaitFor(completion, absl::InfiniteDuration());
  // A world that breaks completes everything, a moment after waits have ended.
  while (!completion.done()) sched_yield();
  return completion.status();
}

bool Coordinator::WaitFor(const Completion& completion,
                          absl::Duration timeout) {
  if (completion.done()) return true;
  const Use use(*this);
  if (!use.open()) return true;
  operations_.MarkUrgent(completion);
  return CoordinateUntil([&] { return completion.done(); }, timeout);
}

bool Coordinator::CoordinateUntil(absl::FunctionRef<bool()> done,
                                  absl::Duration timeout) {
  const absl::Duration spin = options_.spin_while_waiting;
  const int64_t start_ns = environment_.clock.NowNanos();
  const auto time_left = [&] {
    if (timeout == absl::InfiniteDuration()) return timeout;
    return timeout -
           absl::Nanoseconds(environment_.clock.NowNanos() - start_ns);
  };
  ProgressLock::Hold hold = progress_->lock().TryAcquire();
  if (!hold) {
    // The holder may sleep.
    if (application_coordinates_) progress_->wake().Signal();
    hold = progress_->lock().AcquireUnless(done, time_left(), spin);
    if (!hold) {
      // The background thread, which held the lock, may not have seen what
      // became urgent meanwhile.
      if (!done()) progress_->wake().Signal();
      return done();
    }
  }
  int64_t idle_ns = 0;
  application_coordinates_ = true;
  Coordinate([&] {
    ++application_waits_;
    DriveUntil(done, time_left, idle_ns);
    HandBack(done());
  });
  application_ns_ += environment_.clock.NowNanos() - start_ns - idle_ns;
  application_coordinates_ = false;
  hold.Release();
  return done();
}

bool Coordinator::Coordinate(absl::FunctionRef<void()> work) noexcept {
  if (broken()) return false;
  try {
    work();
  } catch (...) {
    threw_ = true;
    progress_->AbortForException();
  }
  return !broken();
}

void Coordinator::DriveUntil(absl::FunctionRef<bool()> done,
                             absl::FunctionRef<absl::Duration()> time_left,
                             int64_t& idle_ns) {
  const absl::Duration spin = options_.spin_while_waiting;
  progress_->set_waits(true);
  progress_->set_asks(false);
  progress_->set_spin(spin);
  const base::SteadyClock stopwatch;  // real time, whatever the world's is
  int64_t progress_ns = stopwatch.NowNanos();
  Backoff backoff(
      {.yields = kYieldsWhileWaiting,
       .first = wake_descriptors_.empty() ? kFirstPauseWhileWaiting
                                          : absl::InfiniteDuration(),
       .longest = wake_descriptors_.empty() ? kLongestPauseWhileWaiting
                                            : absl::InfiniteDuration()});
  while (!done() && !broken() && time_left() > absl::ZeroDuration()) {
    if (progress_->Drive()) {
      backoff.Reset();
      progress_ns = stopwatch.NowNanos();
      continue;
    }
    if (absl::Nanoseconds(stopwatch.NowNanos() - progress_ns) < spin) continue;
    progress_->set_asks(true);
    const absl::Duration pause = backoff.Next();
    if (pause == absl::ZeroDuration()) {
      sched_yield();
    } else if (environment_.channel.PrepareToSleep()) {
      const int64_t asleep_ns = environment_.clock.NowNanos();
      progress_->wake().Sleep(
          wake_descriptors_,
          std::min(progress_->PauseUntilDeadline(pause), time_left()));
      idle_ns += environment_.clock.NowNanos() - asleep_ns;
    }
  }
}

// The background thread, if it sleeps, does not know of what was taken in here,
// or follows what was; the channel tells it of more only if asked to anew;
// submissions wake it only if it knows that somebody waits for them; and it may
// sleep on while there is something to carry on. While it naps it looks itself.
void Coordinator::HandBack(bool done) {
  const bool armed =
      progress_->napping().naps() || broken() || progress_->Arm();
  if (!armed || !done || progress_->has_work() ||
      (progress_->has_to_carry_on() && !progress_->napping().naps() &&
       background_sleeps_until_ns_ >
           environment_.clock.NowNanos() + kLongestToCarryOnNs) ||
      operations_.IsWorthWaking()) {
    progress_->wake().Signal();
  }
  progress_->set_waits(false);
  progress_->set_asks(true);
}

void Coordinator::BackgroundLoop() {
  Backoff backoff(
      {.first = wake_descriptors_.empty() ? kFirstPauseInBackground
                                          : absl::InfiniteDuration(),
       .longest = wake_descriptors_.empty()
                      ? absl::Microseconds(options_.config.max_poll_pause_us)
                      : absl::InfiniteDuration()});
  const int64_t spin_ns = absl::ToInt64Nanoseconds(options_.spin);
  int64_t progress_ns = 0;  // when something happened last, where it spins
  bool woken = true;        // from its sleep, by somebody
  ProgressLock::Hold hold;
  while (hold || (hold = progress_->lock().AcquireInBackground())) {
    bool progress = false;
    bool steps_back = false;
    bool over = false;
    bool looks_again = false;  // there may be work left
    bool naps = false;
    absl::Duration pause;
    const bool stands = Coordinate([&] {
      progress_->set_spin(options_.spin);
      while (!broken() && !progress_->shut_down()) {
        steps_back = progress_->lock().wanted();
        if (steps_back || !progress_->Drive()) break;
        progress = true;
      }
      over = broken() || progress_->shut_down();
      if (over) return;
      if (progress) backoff.Reset();
      if (spin_ns > 0) {
        const int64_t now_ns = environment_.clock.NowNanos();
        if (progress) progress_ns = now_ns;
        looks_again = now_ns - progress_ns < spin_ns;
        if (looks_again) return;
      }
      pause = progress_->PauseUntilDeadline(backoff.Next());
      background_sleeps_until_ns_ = absl::ToInt64Nanoseconds(
          absl::Nanoseconds(environment_.clock.NowNanos()) + pause);
      // Woken by time is not woken for nothing.
      progress_->napping().Decide(progress || !std::exchange(woken, true),
                                  application_waits_);
      naps = progress_->napping().naps() && !steps_back;
      // Whoever takes the lock over meanwhile does this again in the end.
      looks_again =
          steps_back || (!naps && !environment_.channel.PrepareToSleep());
    });
    hold.Release();
    if (over || !stands) break;
    if (looks_again) continue;
    if (naps) {
      hold = Nap();
      continue;
    }
    woken = progress_->wake().Sleep(wake_descriptors_, pause);
    if (spin_ns == 0 && progress_->wake().signalled() &&
        operations_.MayGather()) {
      absl::SleepFor(kGatherPause);
    }
  }
}

// Whoever holds the lock meanwhile does not have to wake anybody when it
// releases it.
ProgressLock::Hold Coordinator::Nap() {
  while (!progress_->wake().Sleep({}, kNap)) {
    if (ProgressLock::Hold hold = progress_->lock().TryAcquire()) return hold;
  }
  return {};
}

absl::Duration Coordinator::cpu_time() const {
  return background_->cpu_time() + absl::Nanoseconds(application_ns_.load());
}

// ---- Leaving.

void Coordinator::Leave(const std::string& reason) {
  const Use use(*this);
  if (use.open() && operations_.Leave(reason)) progress_->wake().Signal();
}

absl::Status Coordinator::Shutdown(const std::string& reason,
                                   absl::Duration timeout,
                                   std::function<void()> at_end) {
  at_end_ = std::move(at_end);
  shutting_down_ = true;
  Leave(reason);
  const bool over = CoordinateUntil(
      [this] { return progress_->shut_down() || broken(); }, timeout);
  if (!over) {
    // Who still holds the lock is inside the data plane, and may stay there.
    const ProgressLock::Hold hold = progress_->lock().AcquireUnless(
        [] { return false; }, kPatienceAtShutdown);
    const absl::Status late = absl::DeadlineExceededError(
        absl::StrCat("shutdown: not all ranks have called shutdown() within ",
                     absl::FormatDuration(timeout)));
    if (hold) {
      // The others may count on this rank.
      Coordinate([&] { progress_->Abort(late, kPatienceAtShutdown); });
    } else {
      interrupted_ = true;
      Break(late);
    }
  }
  progress_->lock().StopBackground();
  progress_->wake().Signal();
  if (!interrupted_) background_->Join();
  if (progress_->shut_down()) return absl::OkStatus();
  // Not world_status(), which tells of the rank that was the first to leave.
  base::MutexLock lock(&mutex_);
  return over ? why_broken_
              : absl::DeadlineExceededError(why_broken_.message());
}

void Coordinator::GiveUp(const std::string& reason) {
  Break(absl::UnavailableError(reason));
}

void Coordinator::Close() {
  closed_ = true;
  {
    base::MutexLock lock(&mutex_);
    while (users_ > 0) unused_.Wait(&mutex_);
  }
  if (progress_ == nullptr) return;
  progress_->lock().StopBackground();
  progress_->wake().Signal();
  background_.reset();
  progress_->EndWatch();  // which may still be telling, and wake through it
  if (threw_) {
    // Nothing of it is used or destroyed but its descriptor.
    progress_->wake().Close();
    (void)progress_.release();
    return;
  }
  if (broken()) progress_->AbandonProcessSets();
  progress_.reset();
}

}  // namespace hvdlite::negotiation
