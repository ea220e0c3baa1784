#include "negotiation/engine/rounds.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/contain_exceptions.h"
#include "google/protobuf/arena.h"

namespace hvdlite::negotiation {
namespace {

// Arming a transport can fail because a message has left something in it.
constexpr int kTriesToArm = 4;
constexpr absl::Duration kLongestPauseWhileSending = absl::Milliseconds(1);
// The pause between calls that push on what the data plane has sent. A peer
// that waits for the data waits at most twice as long, plus the first pause.
constexpr absl::Duration kFirstPauseToCarryOn = absl::Microseconds(500);
constexpr absl::Duration kLongestPauseToCarryOn = absl::Seconds(1);
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
// Time limit for sending messages that the other ranks should still get.
constexpr absl::Duration kFlushPatience = absl::Seconds(10);

// The channel may be made for a tree of certain nodes.
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

}  // namespace

Rounds::Rounds(const Config& config, const CoordinatorEnvironment& environment,
               OperationTable& operations, WakeEvent& wake,
               ProgressLoop::Hooks hooks)
    : environment_(environment),
      operations_(operations),
      hooks_(std::move(hooks)),
      wake_(wake),
      carry_on_at_ns_(kNever),
      carry_on_pause_(
          {.first = kFirstPauseToCarryOn, .longest = kLongestPauseToCarryOn}),
      negotiator_(NegotiatorOptions(
          config, environment_,
          [this](const Decision& decision) { return Stage(decision); })),
      no_memory_messages_(
          AbortMessages(std::string(hooks_.no_memory.message()))),
      watchdog_(environment_.clock,
                base::SecondsOrNever(config.watchdog_seconds), hooks_.stuck,
                {.after = base::SecondsOrNever(config.stall_warning_seconds),
                 .tell =
                     [this](const std::string& text) {
                       environment_.logger.Warning(text);
                     }}),
      executor_(config, environment_, watchdog_, operations_,
                [this] { return ServeDuringBucket(); }) {}

bool Rounds::has_work() const {
  return negotiator_.has_work() || negotiator_.is_awaited() || HasUndelivered();
}

bool Rounds::has_to_carry_on() const {
  return carry_on_at_ns_ != kNever && carry_on_pause_.is_short();
}

Rounds::Found Rounds::Drive() {
  const Found found = ServeChannel() ? Found::kNews : Found::kNothing;
  if (broken()) return found;
  const std::optional<Decision> decision =
      negotiator_.NextDecision(environment_.channel.delivered());
  if (!decision.has_value()) {
    CarryOnDataPlane();
    return found;
  }
  Execute(*decision);
  return Found::kDecision;
}

void Rounds::CarryOnDataPlane() {
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

std::optional<uint32_t> Rounds::Stage(const Decision& decision) {
  if (decision.kind == Decision::Kind::kShutdown && !hooks_.come_to_end()) {
    return std::nullopt;
  }
  return executor_.Stage(decision);
}

bool Rounds::ServeChannel() {
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
      // The transport may still reach other ranks.
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
  Explain();
  if (!negotiator_.Plan()) return progress;
  for (const std::string& warning : negotiator_.TakeWarnings()) {
    environment_.logger.Warning(warning);
  }
  SendOutgoing();
  return progress;
}

absl::Status Rounds::TakeIn(const ControlMessage& received) {
  // Most messages fit into this memory on the stack.
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

void Rounds::Explain() {
  negotiator_.Explain(
      [this]() -> std::optional<Explanation> {
        if (!environment_.explain) return std::nullopt;
        return environment_.explain();
      },
      [this](int rank) -> std::optional<ProcessSample> {
        if (!environment_.look) return std::nullopt;
        return environment_.look(rank);
      });
}

absl::Status Rounds::ServeDuringBucket() {
  ServeChannel();
  CarryOnDataPlane();
  if (broken()) return operations_.world_status();
  // The other ranks will not reach this bucket any more.
  const auto& reason = negotiator_.abort_reason();
  return reason.has_value() ? absl::UnavailableError(*reason)
                            : absl::OkStatus();
}

void Rounds::Abort(const absl::Status& status, absl::Duration patience) {
  negotiator_.Abort(std::string(status.message()));
  SendOutgoing();
  if (!broken()) Flush(patience);
  hooks_.break_world(status);
}

Rounds::Messages Rounds::AbortMessages(const std::string& reason) const {
  Messages messages;
  for (const Negotiator::Outgoing& outgoing :
       negotiator_.AbortMessages(reason)) {
    messages.emplace_back(outgoing.to, outgoing.message.SerializeAsString());
  }
  return messages;
}

void Rounds::AbortForException() noexcept {
  if (broken()) return;
  absl::Status status = hooks_.no_memory;
  Messages messages = std::move(no_memory_messages_);
  // Without memory for another reason, the reason is lack of memory.
  base::ContainExceptions([&] {
    try {
      throw;
    } catch (const std::bad_alloc&) {
    } catch (const std::exception& error) {
      const collective::Topology& topology = environment_.topology;
      const std::string reason = absl::StrCat(
          "rank ", topology.rank, " (", topology.host_of_rank[topology.rank],
          ") cannot continue: ", error.what());
      Messages own = AbortMessages(reason);
      status = absl::UnavailableError(reason);
      messages.swap(own);
    }
  });
  for (auto& [rank, message] : messages) {
    base::ContainExceptions([&, to = rank] {
      environment_.channel.Send(to, std::move(message)).IgnoreError();
    });
  }
  base::ContainExceptions([&] { Flush(kFlushPatience); });
  hooks_.break_world(status);
}

void Rounds::Flush(absl::Duration patience) {
  environment_.communicator.MakeProgress();
  environment_.channel.Flush(patience).IgnoreError();
  environment_.communicator.MakeProgress();
}

bool Rounds::TakeInputs(int64_t now_ns) {
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
  for (const std::string& name : inputs_.released) negotiator_.Release(name);
  const bool any = !inputs_.submitted.empty() || !inputs_.urgent.empty() ||
                   inputs_.leaving.has_value();
  if (inputs_.leaving.has_value()) negotiator_.Leave(*inputs_.leaving);
  inputs_.urgent.clear();
  return any;
}

void Rounds::SendOutgoing() {
  absl::Status first_error;
  // Each one is a message of the channel. The channel counts them, too.
  for (const Negotiator::Outgoing& outgoing : negotiator_.TakeOutgoing()) {
    const absl::Status status = environment_.channel.Send(
        outgoing.to, outgoing.message.SerializeAsString());
    first_error.Update(status);
  }
  // The other ranks have been informed.
  if (!first_error.ok()) hooks_.break_world(first_error);
}

void Rounds::Execute(const Decision& decision) {
  switch (decision.kind) {
    case Decision::Kind::kDeparture:
      executor_.ForgetOperations();
      if (environment_.ended) {
        environment_.ended(absl::UnavailableError(decision.message));
      }
      operations_.Fail(absl::UnavailableError(decision.message), false);
      break;
    case Decision::Kind::kBroken:
      // The ranks below should receive this before this rank stops sending.
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
      // If the world is broken already, the watchdog has completed everything.
      // If it is aborted, that decision comes next.
      if (!status.ok() && !broken() &&
          !negotiator_.abort_reason().has_value()) {
        Abort(status, kFlushPatience);
      }
      break;
    }
  }
}

bool Rounds::Arm() {
  for (int i = 0; i < kTriesToArm; ++i) {
    if (environment_.channel.PrepareToSleep()) return true;
    if (broken()) break;
    ServeChannel();
  }
  return false;
}

absl::Duration Rounds::PauseUntilDeadline(absl::Duration pause) const {
  // Not every transport wakes a rank that has something left to send.
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

}  // namespace hvdlite::negotiation
