#include "negotiation/engine/progress.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/arena.h"

namespace hvdlite::negotiation {
namespace {

// What is left in a transport after a message may keep it from being armed.
constexpr int kTriesToArm = 4;
constexpr absl::Duration kLongestPauseWhileSending = absl::Milliseconds(1);
// How long messages that the other ranks should still get may take.
constexpr absl::Duration kFlushPatience = absl::Seconds(10);

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

}  // namespace

Progress::Progress(const CoordinatorOptions& options,
                   const Coordinator::Environment& environment,
                   OperationTable& operations, Watchdog& watchdog,
                   WakeEvent& wake, Hooks hooks)
    : environment_(environment),
      operations_(operations),
      wake_(wake),
      hooks_(std::move(hooks)),
      negotiator_(NegotiatorOptions(
          options, environment_.topology, environment_.channel,
          [this](const Decision& decision) { return FlagsAtGate(decision); })),
      executor_(options, environment_.communicator, environment_.clock,
                watchdog, operations_, [this] { return ServeDuringBatch(); }) {}

bool Progress::has_work() const {
  return negotiator_.has_work() || negotiator_.is_awaited() || HasUndelivered();
}

bool Progress::Drive() {
  const bool progress = ServeChannel();
  if (broken()) return progress;
  const std::optional<Decision> decision =
      negotiator_.NextDecision(environment_.channel.delivered());
  if (!decision.has_value()) return progress;
  CarryOut(*decision);
  return true;
}

std::optional<uint32_t> Progress::FlagsAtGate(const Decision& decision) {
  if (decision.kind == Decision::Kind::kShutdown && !hooks_.come_to_end()) {
    return std::nullopt;
  }
  return executor_.FlagsAtGate(decision);
}

bool Progress::ServeChannel() {
  negotiator_.Advance(environment_.clock.NowNanos());
  wake_.Drain();
  bool progress = TakeInputs();
  while (true) {
    absl::StatusOr<std::optional<ControlMessage>> received =
        environment_.channel.TryReceive();
    if (!received.ok()) {
      // The transport may still reach others.
      GiveUp(received.status(), kFlushPatience);
      return true;
    }
    if (!received->has_value()) break;
    progress = true;
    if (absl::Status status = TakeIn(**received); !status.ok()) {
      GiveUp(status, kFlushPatience);
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

absl::Status Progress::ServeDuringBatch() {
  ServeChannel();
  if (broken()) return operations_.world_status();
  // The others will not come to this batch any more.
  const auto& reason = negotiator_.given_up();
  return reason.has_value() ? absl::UnavailableError(*reason)
                            : absl::OkStatus();
}

void Progress::GiveUp(const absl::Status& status, absl::Duration patience) {
  negotiator_.GiveUp(std::string(status.message()));
  SendOutgoing();
  if (!broken()) environment_.channel.Flush(patience).IgnoreError();
  hooks_.break_world(status);
}

bool Progress::TakeInputs() {
  operations_.TakeInputs(inputs_, negotiator_.is_awaited(),
                         negotiator_.held_bytes());
  for (SubmittedPtr& pending : inputs_.submitted) {
    SubmittedOperation& taken = *pending;
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

void Progress::CarryOut(const Decision& decision) {
  switch (decision.kind) {
    case Decision::Kind::kDeparture:
      executor_.ForgetOperations();
      operations_.Fail(absl::UnavailableError(decision.message), false);
      break;
    case Decision::Kind::kBroken:
      // Those below should hear of it before this rank falls silent.
      SendOutgoing();
      environment_.channel.Flush(kFlushPatience).IgnoreError();
      hooks_.break_world(absl::UnavailableError(decision.message));
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
        GiveUp(status, kFlushPatience);
      }
      break;
    }
  }
  hooks_.carried_out();
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
  const std::optional<int64_t> deadline_ns = negotiator_.next_deadline_ns();
  if (!deadline_ns.has_value()) return pause;
  const absl::Duration left =
      absl::Nanoseconds(*deadline_ns - environment_.clock.NowNanos());
  return std::clamp(left, absl::Microseconds(100),
                    std::max(pause, absl::Microseconds(100)));
}

}  // namespace hvdlite::negotiation
