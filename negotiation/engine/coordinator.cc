#include "negotiation/engine/coordinator.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "negotiation/engine/operation_table.h"
#include "negotiation/engine/progress.h"
#include "negotiation/engine/progress_thread.h"
#include "negotiation/engine/watchdog.h"

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
// How long a shutdown whose time is up waits for a batch to end.
constexpr absl::Duration kPatienceAtShutdown = absl::Seconds(1);

class CoordinatorImpl final : public Coordinator {
 public:
  CoordinatorImpl(const CoordinatorOptions& options, Environment environment);
  ~CoordinatorImpl() override;

  absl::StatusOr<std::shared_ptr<const Completion>> Submit(
      Operation operation) override;
  absl::StatusOr<PreparedPtr> Prepare(Operation operation) override {
    return operations_.Prepare(std::move(operation));
  }
  absl::Status SubmitPrepared(absl::Span<const PreparedPtr> operations,
                              bool caller_waits) override;
  absl::Status Wait(const Completion& completion) override;
  bool WaitFor(const Completion& completion, absl::Duration timeout) override;
  void Leave(const std::string& reason) override;
  absl::Status Shutdown(const std::string& reason, absl::Duration timeout,
                        std::function<void()> at_end) override;
  absl::Status world_status() const override {
    return operations_.world_status();
  }
  bool interrupted() const override { return interrupted_.load(); }
  void SetRecorder(std::shared_ptr<timeline::TraceRecorder> recorder) override {
    operations_.set_recorder(std::move(recorder));
  }
  absl::Duration cpu_time() const override;

 private:
  // ---- Any thread.
  // Gives the world up: nothing is sent or run any more.
  void Break(const absl::Status& status);
  void OnStuck(const std::string& what);
  bool broken() const { return broken_.load(); }
  // All ranks have left. Unless this one has done so without Shutdown() so far:
  // ends what there is to end.
  bool ComeToEnd();
  // Coordinates until `done`, taking over the role; false after `timeout`.
  bool CoordinateUntil(absl::FunctionRef<bool()> done, absl::Duration timeout);

  // ---- The background thread.
  void BackgroundLoop();
  // Sleeps until the role is free for it (true) or somebody wakes it.
  bool Nap();

  const CoordinatorOptions options_;
  const Environment environment_;
  const std::vector<int> wake_descriptors_;
  WakeEvent wake_;
  Role role_;
  std::atomic<bool> broken_{false};
  std::atomic<bool> interrupted_{false};
  std::function<void()> at_end_;  // set before shutting_down_ is
  std::atomic<bool> shutting_down_{false};
  std::atomic<bool> application_coordinates_{false};
  std::atomic<int64_t> application_ns_{0};  // coordinating, asleep not counted

  OperationTable operations_;
  Watchdog watchdog_;

  // Owned by whoever has the role.
  uint64_t application_waits_ = 0;  // how often it took the role over
  bool napping_ = false;            // the background thread
  Progress progress_;

  BackgroundThread background_;  // the last member: it uses all others
};

CoordinatorImpl::CoordinatorImpl(const CoordinatorOptions& options,
                                 Environment environment)
    : options_(options),
      environment_(std::move(environment)),
      wake_descriptors_(environment_.channel.wake_descriptors()),
      operations_(environment_.topology.rank, environment_.topology.size,
                  options.min_batch_bytes, environment_.clock),
      watchdog_(environment_.clock, options.watchdog_deadline,
                [this](const std::string& what) { OnStuck(what); }),
      progress_(
          options, environment_, operations_, watchdog_, wake_,
          {.broken = broken_,
           .break_world = [this](const absl::Status& status) { Break(status); },
           .come_to_end = [this] { return ComeToEnd(); },
           .carried_out = [this] { role_.Recheck(); }}),
      background_([this] { BackgroundLoop(); }, options.coordinator_cpu,
                  environment_.logger) {}

CoordinatorImpl::~CoordinatorImpl() {
  role_.StopBackground();
  wake_.Signal();
  background_.Join();
  if (broken()) progress_.AbandonProcessSets();
}

void CoordinatorImpl::Break(const absl::Status& status) {
  if (broken_.exchange(true)) return;
  environment_.logger.Error(status.message());
  operations_.Fail(absl::UnavailableError(status.message()), interrupted_);
  role_.Recheck();
  wake_.Signal();
}

void CoordinatorImpl::OnStuck(const std::string& what) {
  interrupted_ = true;
  const absl::Status status = absl::UnavailableError(absl::StrCat(
      "rank ", environment_.topology.rank, " (",
      environment_.topology.host_of_rank[environment_.topology.rank],
      ") has not come back from ", what, " for ",
      absl::FormatDuration(options_.watchdog_deadline),
      "; another rank has probably died or been stopped, or a link is cut"));
  Break(status);
  if (application_coordinates_ && environment_.stuck) {
    environment_.stuck(status);
  }
}

bool CoordinatorImpl::ComeToEnd() {
  if (!shutting_down_) return false;
  if (at_end_) at_end_();
  return true;
}

absl::StatusOr<std::shared_ptr<const Completion>> CoordinatorImpl::Submit(
    Operation operation) {
  const bool caller_waits = operation.caller_waits;
  bool worth_waking = false;
  auto completion = operations_.Submit(std::move(operation), &worth_waking);
  if (worth_waking && !caller_waits) wake_.Signal();
  return completion;
}

absl::Status CoordinatorImpl::SubmitPrepared(
    absl::Span<const PreparedPtr> operations, bool caller_waits) {
  bool worth_waking = false;
  absl::Status status = operations_.SubmitPrepared(operations, &worth_waking);
  if (worth_waking && !caller_waits) wake_.Signal();
  return status;
}

// ---- Waiting.

absl::Status CoordinatorImpl::Wait(const Completion& completion) {
  WaitFor(completion, absl::InfiniteDuration());
  // A world that breaks completes everything, a moment after waits have ended.
  while (!completion.done()) sched_yield();
  return completion.status();
}

bool CoordinatorImpl::WaitFor(const Completion& completion,
                              absl::Duration timeout) {
  if (completion.done()) return true;
  operations_.MarkUrgent(completion);
  return CoordinateUntil([&] { return completion.done(); }, timeout);
}

bool CoordinatorImpl::CoordinateUntil(absl::FunctionRef<bool()> done,
                                      absl::Duration timeout) {
  const absl::Duration spin = options_.spin_while_waiting;
  const int64_t start_ns = environment_.clock.NowNanos();
  const auto time_left = [&] {
    if (timeout == absl::InfiniteDuration()) return timeout;
    return timeout -
           absl::Nanoseconds(environment_.clock.NowNanos() - start_ns);
  };
  if (!role_.TryAcquire()) {
    if (application_coordinates_) wake_.Signal();  // the holder may sleep
    if (!role_.AcquireUnless(done, time_left(), spin)) {
      // The background thread, which had the role, may not have seen what
      // became urgent meanwhile.
      if (!done()) wake_.Signal();
      return done();
    }
  }
  int64_t idle_ns = 0;
  application_coordinates_ = true;
  ++application_waits_;
  progress_.set_waits(true);
  progress_.set_asks(false);
  progress_.set_spin(spin);
  // Real time, whatever the world's clock says.
  const base::SteadyClock stopwatch;
  int64_t progress_ns = stopwatch.NowNanos();
  Backoff backoff(
      {.yields = kYieldsWhileWaiting,
       .first = wake_descriptors_.empty() ? kFirstPauseWhileWaiting
                                          : absl::InfiniteDuration(),
       .longest = wake_descriptors_.empty() ? kLongestPauseWhileWaiting
                                            : absl::InfiniteDuration()});
  while (!done() && !broken() && time_left() > absl::ZeroDuration()) {
    if (progress_.Drive()) {
      backoff.Reset();
      progress_ns = stopwatch.NowNanos();
      continue;
    }
    if (absl::Nanoseconds(stopwatch.NowNanos() - progress_ns) < spin) continue;
    progress_.set_asks(true);
    const absl::Duration pause = backoff.Next();
    if (pause == absl::ZeroDuration()) {
      sched_yield();
    } else if (environment_.channel.PrepareToSleep()) {
      const int64_t asleep_ns = environment_.clock.NowNanos();
      wake_.Sleep(wake_descriptors_,
                  std::min(progress_.PauseUntilDeadline(pause), time_left()));
      idle_ns += environment_.clock.NowNanos() - asleep_ns;
    }
  }
  // The background thread, which may be asleep, does not know of what was taken
  // in here, or follows what was; and the channel tells it of more only if
  // asked to anew. And submissions wake it only if it knows that somebody waits
  // for them. While it naps it looks by itself before long.
  const bool armed = napping_ || broken() || progress_.Arm();
  if (!armed || !done() || progress_.has_work() ||
      operations_.IsWorthWaking()) {
    wake_.Signal();
  }
  application_ns_ += environment_.clock.NowNanos() - start_ns - idle_ns;
  application_coordinates_ = false;
  progress_.set_waits(false);
  progress_.set_asks(true);
  role_.Release();
  return done();
}

void CoordinatorImpl::BackgroundLoop() {
  Backoff backoff(
      {.first = wake_descriptors_.empty() ? kFirstPauseInBackground
                                          : absl::InfiniteDuration(),
       .longest = wake_descriptors_.empty() ? options_.max_poll_pause
                                            : absl::InfiniteDuration()});
  const int64_t spin_ns = absl::ToInt64Nanoseconds(options_.spin);
  int64_t progress_ns = 0;  // when something happened last, where it spins
  uint64_t waits_seen = 0;
  bool has_role = false;
  while (std::exchange(has_role, false) || role_.AcquireInBackground()) {
    progress_.set_spin(options_.spin);
    bool progress = false;
    bool steps_back = false;
    while (!broken() && !progress_.shut_down()) {
      steps_back = role_.wanted();
      if (steps_back || !progress_.Drive()) break;
      progress = true;
    }
    if (progress) backoff.Reset();
    const bool over = broken() || progress_.shut_down();
    if (spin_ns > 0 && !over) {
      const int64_t now_ns = environment_.clock.NowNanos();
      if (progress) progress_ns = now_ns;
      if (now_ns - progress_ns < spin_ns) {
        role_.Release();
        continue;
      }
    }
    const absl::Duration pause = progress_.PauseUntilDeadline(backoff.Next());
    // Where it was woken for what an application thread, which waits again and
    // again, took in by itself, it naps instead: being woken each time would
    // cost both threads, and the peers that ring, more than an operation takes.
    napping_ = (napping_ || !progress) && waits_seen != application_waits_;
    waits_seen = application_waits_;
    const bool naps = napping_ && !over && !steps_back;
    // Whoever takes the role over meanwhile does this again in the end.
    const bool may_sleep =
        over || steps_back || naps || environment_.channel.PrepareToSleep();
    role_.Release();
    if (over) break;
    if (steps_back || !may_sleep) continue;  // there may be work left
    if (naps) {
      has_role = Nap();
      continue;
    }
    wake_.Sleep(wake_descriptors_, pause);
    if (spin_ns == 0 && wake_.signalled() && operations_.MayGather()) {
      absl::SleepFor(kGatherPause);
    }
  }
}

// Whoever has the role meanwhile does not have to wake anybody when it gives it
// back.
bool CoordinatorImpl::Nap() {
  while (!wake_.Sleep({}, kNap)) {
    if (role_.TryAcquire()) return true;
  }
  return false;
}

absl::Duration CoordinatorImpl::cpu_time() const {
  return background_.cpu_time() + absl::Nanoseconds(application_ns_.load());
}

// ---- Leaving.

void CoordinatorImpl::Leave(const std::string& reason) {
  if (operations_.Leave(reason)) wake_.Signal();
}

absl::Status CoordinatorImpl::Shutdown(const std::string& reason,
                                       absl::Duration timeout,
                                       std::function<void()> at_end) {
  at_end_ = std::move(at_end);
  shutting_down_ = true;
  Leave(reason);
  const bool over = CoordinateUntil(
      [this] { return progress_.shut_down() || broken(); }, timeout);
  if (!over) {
    // Who still has the role is inside the data plane, and may stay there.
    const bool has_role =
        role_.AcquireUnless([] { return false; }, kPatienceAtShutdown);
    const absl::Status late = absl::DeadlineExceededError(
        absl::StrCat("shutdown: not all ranks have called shutdown() within ",
                     absl::FormatDuration(timeout)));
    if (has_role) {
      // The others may count on this rank.
      progress_.GiveUp(late, kPatienceAtShutdown);
      role_.Release();
    } else {
      interrupted_ = true;
      Break(late);
    }
  }
  role_.StopBackground();
  wake_.Signal();
  if (!interrupted_) background_.Join();
  if (progress_.shut_down()) return absl::OkStatus();
  if (!over) {
    return absl::DeadlineExceededError(world_status().message());
  }
  return world_status();
}

}  // namespace

std::unique_ptr<Coordinator> Coordinator::Start(
    const CoordinatorOptions& options, Environment environment) {
  return std::make_unique<CoordinatorImpl>(options, std::move(environment));
}

}  // namespace hvdlite::negotiation
