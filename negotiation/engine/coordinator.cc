#include "negotiation/engine/coordinator.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "google/protobuf/arena.h"
#include "negotiation/engine/background_thread.h"
#include "negotiation/engine/backoff.h"
#include "negotiation/engine/decision_executor.h"
#include "negotiation/engine/operation_table.h"
#include "negotiation/engine/role.h"
#include "negotiation/engine/wake_event.h"
#include "negotiation/engine/watchdog.h"
#include "negotiation/protocol/negotiator.h"

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
// What is left in a transport after a message may keep it from being armed.
constexpr int kTriesToArm = 4;
// How long the background thread naps at a time while the application waits
// again and again.
constexpr absl::Duration kNap = absl::Microseconds(200);
constexpr absl::Duration kLongestPauseWhileSending = absl::Milliseconds(1);
// How long messages that the other ranks should still get may take.
constexpr absl::Duration kFlushPatience = absl::Seconds(10);
// How long a shutdown whose time is up waits for a batch to end.
constexpr absl::Duration kPatienceAtShutdown = absl::Seconds(1);

// The channel may be made for the tree of certain nodes.
Negotiator::Options NegotiatorOptions(
    const CoordinatorOptions& options, const collective::Topology& topology,
    const ControlChannel& channel,
    std::function<std::optional<uint32_t>(const Decision&)> at_gate) {
  std::shared_ptr<const WorldLayout> layout = channel.layout();
  if (layout == nullptr) {
    layout = std::make_shared<WorldLayout>(topology.cross_rank_of_rank,
                                           topology.host_of_rank);
  }
  return {.rank = topology.rank,
          .layout = std::move(layout),
          .tree_arity = options.tree_arity,
          .fusion_threshold_bytes = options.fusion_threshold_bytes,
          .min_batch_bytes = options.min_batch_bytes,
          .stall_warning = options.stall_warning,
          .stall_failure = options.stall_failure,
          .heartbeat = {.interval = options.heartbeat_interval,
                        .timeout = options.heartbeat_timeout},
          .at_gate = std::move(at_gate)};
}

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
  // Coordinates until `done`, taking over the role; false after `timeout`.
  bool CoordinateUntil(absl::FunctionRef<bool()> done, absl::Duration timeout);

  // ---- The background thread.
  void BackgroundLoop();
  // Sleeps until the role is free for it (true) or somebody wakes it.
  bool Nap();

  // ---- Whoever has the role.
  // One round: takes in what is new, carries out at most one decision. True if
  // anything happened.
  bool Drive();
  // Takes in submissions and messages, and sends; true if there were any.
  bool ServeChannel();
  absl::Status TakeIn(const ControlMessage& received);
  // Prepares the channel for a sleep, taking in what keeps it from that; false
  // if more and more comes.
  bool Arm();
  void SendOutgoing();
  bool HasUndelivered() const {
    return environment_.channel.delivered() < negotiator_.handed_out();
  }
  // Breaks the world because of an error of this rank, and tells the others.
  void GiveUp(const absl::Status& status,
              absl::Duration patience = kFlushPatience);
  bool TakeInputs();
  void CarryOut(const Decision& decision);
  std::optional<uint32_t> FlagsAtGate(const Decision& decision);
  absl::Duration PauseUntilDeadline(absl::Duration pause) const;

  const CoordinatorOptions options_;
  const Environment environment_;
  const std::vector<int> wake_descriptors_;
  WakeEvent wake_;
  Role role_;
  std::atomic<bool> broken_{false};
  std::atomic<bool> interrupted_{false};
  std::atomic<bool> shut_down_{false};
  std::function<void()> at_end_;  // set before shutting_down_ is
  std::atomic<bool> shutting_down_{false};
  std::atomic<bool> application_coordinates_{false};
  std::atomic<int64_t> application_ns_{0};  // coordinating, asleep not counted

  OperationTable operations_;
  Watchdog watchdog_;

  // Owned by whoever has the role.
  uint64_t application_waits_ = 0;  // how often it took the role over
  bool napping_ = false;            // the background thread
  OperationTable::Inputs inputs_;   // as they are taken in
  Negotiator negotiator_;
  DecisionExecutor executor_;

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
      negotiator_(NegotiatorOptions(
          options, environment_.topology, environment_.channel,
          [this](const Decision& decision) { return FlagsAtGate(decision); })),
      executor_(options, environment_.communicator, environment_.clock,
                watchdog_, operations_,
                [this] {
                  ServeChannel();
                  if (broken()) return world_status();
                  // The others will not come to this batch any more.
                  const auto& reason = negotiator_.given_up();
                  return reason.has_value() ? absl::UnavailableError(*reason)
                                            : absl::OkStatus();
                }),
      background_([this] { BackgroundLoop(); }, options.coordinator_cpu,
                  environment_.logger) {}

CoordinatorImpl::~CoordinatorImpl() {
  role_.StopBackground();
  wake_.Signal();
  background_.Join();
  if (broken()) executor_.AbandonProcessSets();
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
  negotiator_.set_waits(true);
  negotiator_.set_asks(false);
  executor_.set_spin(spin);
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
    if (Drive()) {
      backoff.Reset();
      progress_ns = stopwatch.NowNanos();
      continue;
    }
    if (absl::Nanoseconds(stopwatch.NowNanos() - progress_ns) < spin) continue;
    negotiator_.set_asks(true);
    const absl::Duration pause = backoff.Next();
    if (pause == absl::ZeroDuration()) {
      sched_yield();
    } else if (environment_.channel.PrepareToSleep()) {
      const int64_t asleep_ns = environment_.clock.NowNanos();
      wake_.Sleep(wake_descriptors_,
                  std::min(PauseUntilDeadline(pause), time_left()));
      idle_ns += environment_.clock.NowNanos() - asleep_ns;
    }
  }
  // The background thread, which may be asleep, does not know of what was taken
  // in here, or follows what was; and the channel tells it of more only if
  // asked to anew. And submissions wake it only if it knows that somebody waits
  // for them. While it naps it looks by itself before long.
  const bool armed = napping_ || broken() || Arm();
  if (!armed || !done() || negotiator_.has_work() || negotiator_.is_awaited() ||
      HasUndelivered() || operations_.IsWorthWaking()) {
    wake_.Signal();
  }
  application_ns_ += environment_.clock.NowNanos() - start_ns - idle_ns;
  application_coordinates_ = false;
  negotiator_.set_waits(false);
  negotiator_.set_asks(true);
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
    executor_.set_spin(options_.spin);
    bool progress = false;
    bool steps_back = false;
    while (!broken() && !shut_down_) {
      steps_back = role_.wanted();
      if (steps_back || !Drive()) break;
      progress = true;
    }
    if (progress) backoff.Reset();
    const bool over = broken() || shut_down_;
    if (spin_ns > 0 && !over) {
      const int64_t now_ns = environment_.clock.NowNanos();
      if (progress) progress_ns = now_ns;
      if (now_ns - progress_ns < spin_ns) {
        role_.Release();
        continue;
      }
    }
    const absl::Duration pause = PauseUntilDeadline(backoff.Next());
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

bool CoordinatorImpl::Arm() {
  for (int i = 0; i < kTriesToArm; ++i) {
    if (environment_.channel.PrepareToSleep()) return true;
    if (broken()) break;
    ServeChannel();
  }
  return false;
}

absl::Duration CoordinatorImpl::PauseUntilDeadline(absl::Duration pause) const {
  // Not every transport wakes who has something left to send.
  if (HasUndelivered()) {
    pause = std::min(pause, kLongestPauseWhileSending);
  }
  const std::optional<int64_t> deadline_ns = negotiator_.next_deadline_ns();
  if (!deadline_ns.has_value()) return pause;
  const absl::Duration left =
      absl::Nanoseconds(*deadline_ns - environment_.clock.NowNanos());
  return std::clamp(left, absl::Microseconds(100),
                    std::max(pause, absl::Microseconds(100)));
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
  const bool over =
      CoordinateUntil([this] { return shut_down_ || broken(); }, timeout);
  if (!over) {
    // Who still has the role is inside the data plane, and may stay there.
    const bool has_role =
        role_.AcquireUnless([] { return false; }, kPatienceAtShutdown);
    const absl::Status late = absl::DeadlineExceededError(
        absl::StrCat("shutdown: not all ranks have called shutdown() within ",
                     absl::FormatDuration(timeout)));
    if (has_role) {
      GiveUp(late, kPatienceAtShutdown);  // the others may count on this rank
      role_.Release();
    } else {
      interrupted_ = true;
      Break(late);
    }
  }
  role_.StopBackground();
  wake_.Signal();
  if (!interrupted_) background_.Join();
  if (shut_down_) return absl::OkStatus();
  if (!over) {
    return absl::DeadlineExceededError(world_status().message());
  }
  return world_status();
}

// ---- Coordinating. The caller has the role.

bool CoordinatorImpl::Drive() {
  const bool progress = ServeChannel();
  if (broken()) return progress;
  const std::optional<Decision> decision =
      negotiator_.NextDecision(environment_.channel.delivered());
  if (!decision.has_value()) return progress;
  CarryOut(*decision);
  return true;
}

std::optional<uint32_t> CoordinatorImpl::FlagsAtGate(const Decision& decision) {
  if (decision.kind == Decision::Kind::kShutdown) {
    // All ranks have left, but this one perhaps without Shutdown() so far.
    if (!shutting_down_) return std::nullopt;
    if (at_end_) at_end_();
  }
  return executor_.FlagsAtGate(decision);
}

bool CoordinatorImpl::ServeChannel() {
  negotiator_.Advance(environment_.clock.NowNanos());
  wake_.Drain();
  bool progress = TakeInputs();
  while (true) {
    absl::StatusOr<std::optional<ControlMessage>> received =
        environment_.channel.TryReceive();
    if (!received.ok()) {
      // The transport may still reach others.
      GiveUp(received.status());
      return true;
    }
    if (!received->has_value()) break;
    progress = true;
    if (absl::Status status = TakeIn(**received); !status.ok()) {
      GiveUp(status);
      return true;
    }
  }
  for (const std::string& warning : environment_.channel.TakeWarnings()) {
    environment_.logger.Warning(warning);
  }
  negotiator_.ComeToGate();
  if (!negotiator_.touched()) return progress;
  for (const std::string& warning : negotiator_.TakeWarnings()) {
    environment_.logger.Warning(warning);
  }
  negotiator_.Plan();
  negotiator_.ComeToGate();
  SendOutgoing();
  return progress;
}

absl::Status CoordinatorImpl::TakeIn(const ControlMessage& received) {
  // On the stack, where most messages fit.
  alignas(std::max_align_t) char block[2048];
  google::protobuf::ArenaOptions memory;
  memory.initial_block = block;
  memory.initial_block_size = sizeof block;
  google::protobuf::Arena arena(memory);
  auto* const message =
      google::protobuf::Arena::CreateMessage<wire::Message>(&arena);
  if (!message->ParseFromString(received.bytes)) {
    return absl::InternalError(absl::StrCat(
        "negotiation: unreadable message from rank ", received.from));
  }
  return negotiator_.OnMessage(received.from, *message);
}

void CoordinatorImpl::GiveUp(const absl::Status& status,
                             absl::Duration patience) {
  negotiator_.GiveUp(std::string(status.message()));
  SendOutgoing();
  if (!broken()) environment_.channel.Flush(patience).IgnoreError();
  Break(status);
}

bool CoordinatorImpl::TakeInputs() {
  operations_.TakeInputs(inputs_, negotiator_.is_awaited(),
                         negotiator_.held_bytes());
  for (PendingPtr& pending : inputs_.submitted) {
    PendingOperation& taken = *pending;
    const Token token = executor_.Add(std::move(pending));
    negotiator_.Submit(taken.operation.request, taken.operation.absent, token,
                       &taken.hint, taken.submitted_ns, taken.operation.step);
  }
  for (const PendingPtr& pending : inputs_.urgent) {
    negotiator_.MarkUrgent(pending->name());
  }
  const bool any = !inputs_.submitted.empty() || !inputs_.urgent.empty() ||
                   inputs_.leaving.has_value();
  if (inputs_.leaving.has_value()) negotiator_.Leave(*inputs_.leaving);
  inputs_.urgent.clear();
  return any;
}

void CoordinatorImpl::SendOutgoing() {
  absl::Status first_error;
  // Each is one message of the channel, which counts them, too.
  for (const Negotiator::Outgoing& outgoing : negotiator_.TakeOutgoing()) {
    const absl::Status status = environment_.channel.Send(
        outgoing.to, outgoing.message.SerializeAsString());
    first_error.Update(status);
  }
  // The others have been told.
  if (!first_error.ok()) Break(first_error);
}

void CoordinatorImpl::CarryOut(const Decision& decision) {
  switch (decision.kind) {
    case Decision::Kind::kDeparture:
      executor_.ForgetOperations();
      operations_.Fail(absl::UnavailableError(decision.message), false);
      break;
    case Decision::Kind::kBroken:
      // Those below should hear of it before this rank falls silent.
      SendOutgoing();
      environment_.channel.Flush(kFlushPatience).IgnoreError();
      Break(absl::UnavailableError(decision.message));
      break;
    case Decision::Kind::kShutdown:
      shut_down_ = true;
      break;
    default: {
      const absl::Status status = executor_.CarryOut(decision);
      if (decision.has_gate) negotiator_.OnDone();
      // Where it is broken already, the watchdog has completed everything;
      // where it is given up, that decision comes next.
      if (!status.ok() && !broken() && !negotiator_.given_up().has_value()) {
        GiveUp(status);
      }
      break;
    }
  }
  role_.Recheck();
}

}  // namespace

std::unique_ptr<Coordinator> Coordinator::Start(
    const CoordinatorOptions& options, Environment environment) {
  return std::make_unique<CoordinatorImpl>(options, std::move(environment));
}

}  // namespace hvdlite::negotiation
