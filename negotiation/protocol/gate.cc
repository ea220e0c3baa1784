#include "negotiation/protocol/gate.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "negotiation/protocol/wire_format.h"

namespace hvdlite::negotiation {
namespace {

constexpr uint64_t kFlagMask = (uint64_t{1} << kGateFlagBits) - 1;
// Next to the flags: the receiver has been counted as arrived, and does not
// have to send a message.
constexpr uint32_t kCounted = 1 << (kGateFlagBits - 1);
constexpr int kParent = 0;  // the edge to the parent; children follow

uint64_t Bit(int edge) { return uint64_t{1} << edge; }

}  // namespace

Gates::Gates(int rank, const TreePosition& tree, const Membership& membership)
    : rank_(rank),
      tree_(tree),
      membership_(membership),
      last_gate_(tree.children.size() + 1),
      waits_after_(tree.children.size() + 1) {}

int Gates::EdgeOf(int rank) const {
  if (rank == tree_.parent) return kParent;
  for (size_t i = 0; i < tree_.children.size(); ++i) {
    if (tree_.children[i].rank == rank) return static_cast<int>(i) + 1;
  }
  return -1;
}

int Gates::RankAt(int edge) const {
  return edge == kParent ? tree_.parent
                         : tree_.children[static_cast<size_t>(edge) - 1].rank;
}

const Gates::Gate* Gates::Find(uint64_t number) const {
  for (const Gate& gate : gates_) {
    if (gate.number == number) return &gate;
  }
  return nullptr;
}

Gates::Gate* Gates::Find(uint64_t number) {
  return const_cast<Gate*>(std::as_const(*this).Find(number));
}

void Gates::Open(uint64_t number, ProcessSetId process_set,
                 bool counts_on_waiting) {
  if (abandoned_) return;
  last_opened_ = number;
  Gate gate;
  gate.number = number;
  gate.member = membership_.IsMember(process_set, rank_);
  gate.edges = membership_.EdgesOf(process_set);
  for (uint64_t left = gate.edges; left != 0; left &= left - 1) {
    const auto edge = static_cast<size_t>(std::countr_zero(left));
    const uint64_t before = std::exchange(last_gate_[edge], number);
    const auto waits_after = std::exchange(waits_after_[edge], std::nullopt);
    if (counts_on_waiting && waits_after.has_value() &&
        *waits_after >= before) {
      gate.counted |= Bit(static_cast<int>(edge));
    }
  }
  // If all members are behind one edge, they meet without this rank.
  if (!gate.member && std::popcount(gate.edges) < 2) return;
  gate.heard = gate.counted;
  Proceed(gates_.emplace_back(std::move(gate)));
}

void Gates::OnReport(int from, std::optional<uint64_t> waits_after) {
  waits_after_[static_cast<size_t>(EdgeOf(from))] = waits_after;
}

void Gates::Proceed(Gate& gate) {
  if (gate.member && !gate.arrived) return;
  const uint64_t unheard = gate.edges & ~gate.heard;
  // With two silent edges, no neighbour can be told.
  if (std::popcount(unheard) > 1) return;
  for (uint64_t left = gate.edges & ~gate.told; left != 0; left &= left - 1) {
    const int edge = std::countr_zero(left);
    if ((unheard & ~Bit(edge)) != 0) continue;
    gate.told |= Bit(edge);
    const uint32_t counted = (gate.counted & Bit(edge)) != 0 ? kCounted : 0;
    outgoing_.push_back(
        {edge, gate.number << kGateFlagBits | gate.flags | counted});
  }
  if (!gate.member && gate.told == gate.edges) Close(gate.number);
}

bool Gates::Arrive(uint64_t number, uint32_t flags) {
  Gate* const gate = Find(number);
  if (gate == nullptr) return true;  // abandoned
  if (flags != 0 && gate->told != 0) return false;
  gate->arrived = true;
  gate->flags |= flags;
  Proceed(*gate);
  return true;
}

absl::Status Gates::OnMessage(int from, uint64_t message) {
  if (abandoned_) return absl::OkStatus();
  const int edge = EdgeOf(from);
  const uint64_t number = message >> kGateFlagBits;
  Gate* const gate = Find(number);
  // The sender sent this before it knew that it had been counted.
  const bool known = gate == nullptr
                         ? number <= last_opened_
                         : edge >= 0 && (gate->counted & Bit(edge)) != 0;
  if (edge >= 0 && known) return absl::OkStatus();
  if (edge < 0 || gate == nullptr || (gate->edges & Bit(edge)) == 0 ||
      (gate->heard & Bit(edge)) != 0) {
    return ProtocolError(
        absl::StrCat("rank ", from, " was not expected at gate ", number));
  }
  gate->heard |= Bit(edge);
  if (HasCounted(message)) gate->told |= Bit(edge);
  gate->flags |=
      static_cast<uint32_t>(message & kFlagMask & ~uint64_t{kCounted});
  Proceed(*gate);
  return absl::OkStatus();
}

bool Gates::HasCounted(uint64_t gate) { return (gate & kCounted) != 0; }

std::optional<uint32_t> Gates::Passed(uint64_t number) const {
  const Gate* const gate = Find(number);
  if (gate == nullptr || !gate->arrived || gate->heard != gate->edges) {
    return std::nullopt;
  }
  return gate->flags;
}

bool Gates::MayBlock(uint64_t number) const {
  return gates_.empty() || gates_.front().number >= number;
}

void Gates::Close(uint64_t number) {
  std::erase_if(gates_,
                [&](const Gate& gate) { return gate.number == number; });
}

void Gates::Abandon() {
  abandoned_ = true;
  outgoing_.clear();
  std::erase_if(gates_, [](const Gate& gate) { return !OthersMayBegin(gate); });
}

// A member that has not arrived has sent news only if it has been counted.
bool Gates::OthersMayBegin(const Gate& gate) {
  return gate.member && gate.heard == gate.edges &&
         (gate.arrived || gate.told != 0);
}

bool Gates::OthersMayBegin(uint64_t number) const {
  const Gate* const gate = Find(number);
  return gate != nullptr && OthersMayBegin(*gate);
}

void Gates::TakeOutgoing(int to,
                         google::protobuf::RepeatedField<uint64_t>& gates) {
  if (outgoing_.empty()) return;
  const int edge = EdgeOf(to);
  std::erase_if(outgoing_, [&](const Outgoing& outgoing) {
    if (outgoing.edge != edge) return false;
    gates.Add(outgoing.gate);
    return true;
  });
}

std::vector<int> Gates::Missing(uint64_t number) const {
  std::vector<int> ranks;
  const Gate* const gate = Find(number);
  if (gate == nullptr) return ranks;
  for (uint64_t left = gate->edges & ~gate->heard; left != 0;
       left &= left - 1) {
    ranks.push_back(RankAt(std::countr_zero(left)));
  }
  return ranks;
}

}  // namespace hvdlite::negotiation
