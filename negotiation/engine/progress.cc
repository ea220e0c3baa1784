#include "negotiation/engine/progress.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "google/protobuf/arena.h"

namespace hvdlite::negotiation {
namespace {

// What is left in a transport after a message may keep it from being armed.
constexpr int kTriesToArm = 4;
constexpr absl::Duration kLongestPauseWhileSending = absl::Milliseconds(1);
// Between calls that carry on what the data plane has sent: a peer that waits
// for it does so for at most twice the time, and the first pause.
constexpr absl::Duration kFirstPauseToCarryOn = absl::Microseconds(500);
constexpr absl::Duration kLongestPauseToCarryOn = absl::Seconds(1);
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
// How long messages that the other ranks should still get may take.
constexpr absl::Duration kFlushPatience = absl::Seconds(10);

// The channel may be made for the tree of certain nodes.
Negotiator::Options NegotiatorOptions(
    const Config& config, const CoordinatorEnvironment& environment,
    std::function<std::optional<uint32_t>(const Decision&)> at_gate) {
  const collective::Topology& topology = environment.topology;
  std::shared_ptr<const WorldLayout> layout = environment.channel.layout();
  if (layout == nullptr) {
    layout = std::make_shared<WorldLayout>(topology.cross_rank_of_rank,
                                           topology.host_of_rank);
  }
  return {
      .rank = topology.rank,
      .layout = std::move(layout),
      .tree_arity = static_cast<int>(config.tree_arity),
      .fusion_threshold_bytes = config.fusion_threshold_bytes,
      .min_batch_bytes = config.min_batch_bytes,
      .stall_warning = base::SecondsOrNever(config.stall_warning_seconds),
      .stall_failure = base::SecondsOrNever(config.stall_failure_seconds),
      .heartbeat = {.timeout = base::SecondsOrNever(config.heartbeat_seconds)},
      .explains = environment.explain != nullptr,
      .pids = environment.pids,
      .at_gate = std::move(at_gate)};
}

// As sched_setattr(2) describes it; the C library has neither this nor the
// calls, and the kernel's header gets into the way of <sched.h>.
struct SchedulingAttributes {
  uint32_t size = sizeof(SchedulingAttributes);
  uint32_t policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime_ns = 0;  // under the usual policy: the slice
  uint64_t deadline_ns = 0;
  uint64_t period_ns = 0;
};

bool GetScheduling(SchedulingAttributes* attributes) {
  return syscall(SYS_sched_getattr, 0, attributes, sizeof *attributes, 0) == 0;
}

// Asks for time slices of this length (0.1 ms to 100 ms) for the calling
// thread: one with short slices that wakes up gets a core sooner from threads
// that compute. Needs no privileges. False where the kernel knows nothing of it
// (Linux before 6.12, other policies than the usual one).
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

// ---- Rounds.

Progress::Progress(const Config& config,
                   const CoordinatorEnvironment& environment,
                   OperationTable& operations, Hooks hooks)
    : environment_(environment),
      operations_(operations),
      hooks_(std::move(hooks)),
      carry_on_at_ns_(kNever),
      carry_on_pause_(
          {.first = kFirstPauseToCarryOn, .longest = kLongestPauseToCarryOn}),
      negotiator_(NegotiatorOptions(
          config, environment_,
          [this](const Decision& decision) { return Stage(decision); })),
      watchdog_(environment_.clock,
                base::SecondsOrNever(config.watchdog_seconds), hooks_.stuck,
                {.after = base::SecondsOrNever(config.stall_warning_seconds),
                 .tell =
                     [this](const std::string& text) {
                       environment_.logger.Warning(text);
                     }}),
      executor_(config, environment_, watchdog_, operations_,
                [this] { return ServeDuringBatch(); }) {}

bool Progress::has_work() const {
  return negotiator_.has_work() || negotiator_.is_awaited() || HasUndelivered();
}

bool Progress::has_to_carry_on() const {
  return carry_on_at_ns_ != kNever && carry_on_pause_.is_short();
}

bool Progress::Drive() {
  const bool progress = ServeChannel();
  if (broken()) return progress;
  const std::optional<Decision> decision =
      negotiator_.NextDecision(environment_.channel.delivered());
  if (!decision.has_value()) {
    CarryOnDataPlane();
    return progress;
  }
  Execute(*decision);
  return true;
}

void Progress::CarryOnDataPlane() {
  if (broken()) return;
  const int64_t now_ns = environment_.clock.NowNanos();
  if (environment_.communicator.TakeCalls()) {
    carry_on_pause_.Reset();
  } else if (now_ns >= carry_on_at_ns_) {
    environment_.communicator.MakeProgress();
  } else {
    return;
  }
  carry_on_at_ns_ = now_ns + absl::ToInt64Nanoseconds(carry_on_pause_.Next());
}

std::optional<uint32_t> Progress::Stage(const Decision& decision) {
  if (decision.kind == Decision::Kind::kShutdown && !hooks_.come_to_end()) {
    return std::nullopt;
  }
  return executor_.Stage(decision);
}

bool Progress::ServeChannel() {
  const int64_t now_ns = environment_.clock.NowNanos();
  negotiator_.Advance(now_ns);
  wake_.Drain();
  if (environment_.sample) environment_.sample();
  if (asks_everybody_ && asks_everybody_.exchange(false)) {
    negotiator_.AskEverybody();
  }
  bool progress = TakeInputs(now_ns);
  while (true) {
    absl::StatusOr<std::optional<ControlMessage>> received =
        environment_.channel.TryReceive();
    if (!received.ok()) {
      // The transport may still reach others.
      Abort(received.status(), kFlushPatience);
      return true;
    }
    if (!received->has_value()) break;
    progress = true;
    if (absl::Status status = TakeIn(**received); !status.ok()) {
      Abort(status, kFlushPatience);
      return true;
    }
  }
  for (const std::string& warning : environment_.channel.TakeWarnings()) {
    environment_.logger.Warning(warning);
  }
  negotiator_.ComeToGate();
  if (!negotiator_.touched()) return progress;
  Explain();
  for (const std::string& warning : negotiator_.TakeWarnings()) {
    environment_.logger.Warning(warning);
  }
  negotiator_.Plan();
  negotiator_.ComeToGate();
  SendOutgoing();
  return progress;
}

absl::Status Progress::TakeIn(const ControlMessage& received) {
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

void Progress::Explain() {
  if (negotiator_.awaits_explanation() && environment_.explain) {
    negotiator_.Explain(environment_.explain());
  }
  if (!environment_.look) return;
  for (const int rank : negotiator_.TakeLooks()) {
    if (const auto sample = environment_.look(rank)) {
      negotiator_.OnLook(rank, *sample);
    }
  }
}

absl::Status Progress::ServeDuringBatch() {
  ServeChannel();
  CarryOnDataPlane();
  if (broken()) return operations_.world_status();
  // The others will not come to this batch any more.
  const auto& reason = negotiator_.abort_reason();
  return reason.has_value() ? absl::UnavailableError(*reason)
                            : absl::OkStatus();
}

void Progress::Abort(const absl::Status& status, absl::Duration patience) {
  negotiator_.Abort(std::string(status.message()));
  SendOutgoing();
  if (!broken()) Flush(patience);
  hooks_.break_world(status);
}

void Progress::Flush(absl::Duration patience) {
  environment_.communicator.MakeProgress();
  environment_.channel.Flush(patience).IgnoreError();
  environment_.communicator.MakeProgress();
}

bool Progress::TakeInputs(int64_t now_ns) {
  operations_.TakeInputs(inputs_, negotiator_.is_awaited(),
                         negotiator_.coalesced_bytes());
  for (SubmittedPtr& pending : inputs_.submitted) {
    SubmittedOperation& taken = *pending;
    const int64_t since_ns = std::max(inputs_.wanted_ns, taken.submitted_ns);
    taken.picked_up_ns =
        inputs_.wanted_ns == 0 ? 0 : std::max<int64_t>(now_ns - since_ns, 0);
    const Token token = executor_.Add(std::move(pending));
    negotiator_.Submit(taken.operation.request, taken.operation.absent, token,
                       &taken.hint, taken.submitted_ns, taken.operation.step);
  }
  for (const SubmittedPtr& pending : inputs_.urgent) {
    negotiator_.MarkUrgent(pending->name());
  }
  const bool any = !inputs_.submitted.empty() || !inputs_.urgent.empty() ||
                   inputs_.leaving.has_value();
  if (inputs_.leaving.has_value()) negotiator_.Leave(*inputs_.leaving);
  inputs_.urgent.clear();
  return any;
}

void Progress::SendOutgoing() {
  absl::Status first_error;
  // Each is one message of the channel, which counts them, too.
  for (const Negotiator::Outgoing& outgoing : negotiator_.TakeOutgoing()) {
    const absl::Status status = environment_.channel.Send(
        outgoing.to, outgoing.message.SerializeAsString());
    first_error.Update(status);
  }
  // The others have been told.
  if (!first_error.ok()) hooks_.break_world(first_error);
}

void Progress::Execute(const Decision& decision) {
  switch (decision.kind) {
    case Decision::Kind::kDeparture:
      executor_.ForgetOperations();
      if (environment_.ended) {
        environment_.ended(absl::UnavailableError(decision.message));
      }
      operations_.Fail(absl::UnavailableError(decision.message), false);
      break;
    case Decision::Kind::kBroken:
      // Those below should hear of it before this rank falls silent.
      SendOutgoing();
      Flush(kFlushPatience);
      hooks_.break_world(absl::UnavailableError(decision.message));
      break;
    case Decision::Kind::kShutdown:
      shut_down_ = true;
      break;
    default: {
      const absl::Status status = executor_.Execute(decision);
      CarryOnDataPlane();
      if (decision.has_gate) negotiator_.OnDone();
      // Where it is broken already, the watchdog has completed everything;
      // where it is aborted, that decision comes next.
      if (!status.ok() && !broken() &&
          !negotiator_.abort_reason().has_value()) {
        Abort(status, kFlushPatience);
      }
      break;
    }
  }
  lock_.Recheck();
}

bool Progress::Arm() {
  for (int i = 0; i < kTriesToArm; ++i) {
    if (environment_.channel.PrepareToSleep()) return true;
    if (broken()) break;
    ServeChannel();
  }
  return false;
}

absl::Duration Progress::PauseUntilDeadline(absl::Duration pause) const {
  // Not every transport wakes who has something left to send.
  if (HasUndelivered()) {
    pause = std::min(pause, kLongestPauseWhileSending);
  }
  const int64_t deadline_ns = std::min(
      negotiator_.next_deadline_ns().value_or(kNever), carry_on_at_ns_);
  if (deadline_ns == kNever) return pause;
  const absl::Duration left =
      absl::Nanoseconds(deadline_ns - environment_.clock.NowNanos());
  return std::clamp(left, absl::Microseconds(100),
                    std::max(pause, absl::Microseconds(100)));
}

// ---- Threads.

bool ProgressLock::AcquireUnless(absl::FunctionRef<bool()> done,
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
    // The background thread steps back for waiters.
    if (waiters_ == 0) changed_.NotifyAll();
    return false;
  }
  held_ = true;
  return true;
}

bool ProgressLock::TryAcquire() {
  base::MutexLock lock(&mutex_);
  if (held_) return false;
  held_ = true;
  return true;
}

bool ProgressLock::AcquireInBackground() {
  base::MutexLock lock(&mutex_);
  while ((held_ || waiters_ > 0) && !stopped_) changed_.Wait(&mutex_);
  if (stopped_) return false;
  held_ = true;
  return true;
}

void ProgressLock::Release() {
  base::MutexLock lock(&mutex_);
  held_ = false;
  changed_.NotifyAll();
}

void ProgressLock::Recheck() {
  base::MutexLock lock(&mutex_);
  if (waiters_ > 0) changed_.NotifyAll();
}

bool ProgressLock::wanted() const {
  base::MutexLock lock(&mutex_);
  return waiters_ > 0;
}

void ProgressLock::StopBackground() {
  base::MutexLock lock(&mutex_);
  stopped_ = true;
  changed_.NotifyAll();
}

BackgroundThread::BackgroundThread(std::function<void()> body,
                                   std::optional<int> cpu,
                                   const base::Logger& logger) {
  thread_ = std::thread([this, body = std::move(body), cpu, &logger] {
    pthread_setname_np(pthread_self(), "hvdlite");
    RequestTimeSlice(kSlice);
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

WakeEvent::WakeEvent() : descriptor_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (descriptor_ < 0) {
    throw std::system_error(errno, std::generic_category(), "eventfd");
  }
}

WakeEvent::~WakeEvent() { close(descriptor_); }

void WakeEvent::Signal() {
  if (signalled_.exchange(true)) return;
  const uint64_t one = 1;
  // Cannot fail: the counter never comes near its limit.
  [[maybe_unused]] const ssize_t written = write(descriptor_, &one, sizeof one);
}

void WakeEvent::Drain() {
  if (!signalled_.load()) return;
  // The descriptor first: a signal that comes in between finds `signalled_` set
  // and writes nothing, and what it announces is visible after the exchange. If
  // there is nothing to read, the signaller is just about to write; forgetting
  // its signal now would leave the descriptor readable for ever.
  uint64_t count;
  if (read(descriptor_, &count, sizeof count) != sizeof count) return;
  signalled_.exchange(false);
}

bool WakeEvent::Sleep(absl::Span<const int> descriptors,
                      absl::Duration timeout) const {
  absl::InlinedVector<pollfd, 8> watched;
  watched.push_back({descriptor_, POLLIN, 0});
  for (const int descriptor : descriptors) {
    watched.push_back({descriptor, POLLIN, 0});
  }
  const timespec pause = absl::ToTimespec(timeout);
  return ppoll(watched.data(), watched.size(),
               timeout == absl::InfiniteDuration() ? nullptr : &pause,
               nullptr) != 0;
}

}  // namespace hvdlite::negotiation
