#include "negotiation/protocol/decision_queue.h"

#include <algorithm>
#include <utility>

namespace hvdlite::negotiation {

DecisionQueue::DecisionQueue(Options options, const TreePosition& tree,
                             const Membership& membership)
    : options_(std::move(options)),
      membership_(membership),
      gates_(options_.rank, tree, membership) {}

void DecisionQueue::OpenGate(Decision& decision, bool counts_on_waiting) {
  gates_.Open(decision.number, decision.process_set, counts_on_waiting);
  decision.has_gate = membership_.IsMember(decision.process_set, options_.rank);
}

DecisionQueue::Arrival DecisionQueue::ComeToGate(int64_t now_ns) {
  if (running_ || decisions_.empty()) return Arrival::kNone;
  Decision& next = decisions_.front();
  if (!next.has_gate || next.arrived_ns.has_value()) return Arrival::kNone;
  const std::optional<uint32_t> flags =
      options_.at_gate ? options_.at_gate(next) : 0;
  if (!flags.has_value()) return Arrival::kNone;
  next.arrived_ns = now_ns;
  return gates_.Arrive(next.number, *flags) ? Arrival::kAtGate
                                            : Arrival::kTooLate;
}

bool DecisionQueue::CanBegin(uint64_t delivered) const {
  return !decisions_.empty() && !running_ &&
         (!decisions_.front().has_gate ||
          (gates_.Passed(decisions_.front().number).has_value() &&
           HasNothingLeft(decisions_.front().number, delivered)));
}

bool DecisionQueue::HasNothingLeft(uint64_t number, uint64_t delivered) const {
  return (options_.blocks_before_relaying || gates_.MayBlock(number)) &&
         std::none_of(told_.begin(), told_.end(), [&](const Told& told) {
           return told.gate <= number && told.message > delivered;
         });
}

std::optional<Decision> DecisionQueue::Begin(uint64_t delivered) {
  if (decisions_.empty() && told_.empty()) return std::nullopt;
  std::erase_if(told_,
                [&](const Told& told) { return told.message <= delivered; });
  if (!CanBegin(delivered)) return std::nullopt;
  Decision decision = std::move(decisions_.front());
  decisions_.pop_front();
  shut_down_ = decision.kind == Decision::Kind::kShutdown;
  if (decision.has_gate) {
    decision.gate_flags = gates_.Passed(decision.number).value_or(0);
    gates_.Close(decision.number);
    running_ = true;
    running_name_ = decision.name;
  }
  return decision;
}

const std::string& DecisionQueue::OnDone() {
  running_ = false;
  return running_name_;
}

void DecisionQueue::Abandon() {
  gates_.Abandon();
  std::erase_if(decisions_, [&](const Decision& waiting) {
    return waiting.has_gate &&
           !(gates_.OthersMayBegin(waiting.number) &&
             HasNothingLeft(waiting.number, /*delivered=*/0));
  });
}

absl::Status DecisionQueue::OnMessage(int from, const wire::Message& message) {
  for (const uint64_t gate : message.gates()) {
    if (absl::Status status = gates_.OnMessage(from, gate); !status.ok()) {
      return status;
    }
    if (!Gates::HasCounted(gate)) continue;
    // What this rank has sent about it earlier need not arrive any more.
    std::erase_if(told_, [&](const Told& told) {
      return told.gate == gate >> kGateFlagBits;
    });
  }
  return absl::OkStatus();
}

void DecisionQueue::OnSend(const wire::Message& message, uint64_t number) {
  for (const uint64_t gate : message.gates()) {
    told_.push_back({gate >> kGateFlagBits, number});
  }
}

}  // namespace hvdlite::negotiation
