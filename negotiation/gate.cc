#include "negotiation/gate.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "negotiation/protocol_error.h"

namespace hvdlite::negotiation {
namespace {

constexpr uint64_t kFlagMask = (uint64_t{1} << kGateFlagBits) - 1;
constexpr int kParent = 0;  // as an edge; the children follow

uint64_t Bit(int edge) { return uint64_t{1} << edge; }

}  // namespace

Gates::Gates(int rank, const TreePosition& tree, const Membership& membership)
    : rank_(rank), tree_(tree), membership_(membership) {}

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

void Gates::Open(uint64_t number, ProcessSetId process_set) {
  if (abandoned_) return;
  Gate gate;
  gate.number = number;
  gate.member = membership_.IsMember(process_set, rank_);
  gate.edges = membership_.EdgesOf(process_set);
  // All members are behind one edge: they meet without this rank.
  if (!gate.member && std::popcount(gate.edges) < 2) return;
  gate.flags.resize(static_cast<size_t>(std::bit_width(gate.edges)));
  gates_.push_back(std::move(gate));
}

void Gates::Proceed(Gate& gate) {
  if (gate.member && !gate.arrived) return;
  const uint64_t unheard = gate.edges & ~gate.heard;
  // With two edges unheard of, there is nobody who may be told.
  if (std::popcount(unheard) > 1) return;
  for (uint64_t left = gate.edges & ~gate.told; left != 0; left &= left - 1) {
    const int edge = std::countr_zero(left);
    if ((unheard & ~Bit(edge)) != 0) continue;
    uint32_t flags = gate.own_flags;
    for (size_t other = 0; other < gate.flags.size(); ++other) {
      if (static_cast<int>(other) != edge) flags |= gate.flags[other];
    }
    gate.told |= Bit(edge);
    outgoing_.push_back({edge, gate.number << kGateFlagBits | flags});
  }
  if (!gate.member && gate.told == gate.edges) Close(gate.number);
}

void Gates::Arrive(uint64_t number, uint32_t flags) {
  Gate* const gate = Find(number);
  if (gate == nullptr) return;  // abandoned
  gate->arrived = true;
  gate->own_flags = flags;
  Proceed(*gate);
}

absl::Status Gates::OnMessage(int from, uint64_t message) {
  if (abandoned_) return absl::OkStatus();
  const int edge = EdgeOf(from);
  Gate* const gate = Find(message >> kGateFlagBits);
  if (edge < 0 || gate == nullptr || (gate->edges & Bit(edge)) == 0 ||
      (gate->heard & Bit(edge)) != 0) {
    return ProtocolError(absl::StrCat(
        "rank ", from, " was not expected at gate ", message >> kGateFlagBits));
  }
  gate->heard |= Bit(edge);
  gate->flags[static_cast<size_t>(edge)] =
      static_cast<uint32_t>(message & kFlagMask);
  Proceed(*gate);
  return absl::OkStatus();
}

std::optional<uint32_t> Gates::Passed(uint64_t number) const {
  const Gate* const gate = Find(number);
  if (gate == nullptr || !gate->arrived || gate->heard != gate->edges) {
    return std::nullopt;
  }
  uint32_t flags = gate->own_flags;
  for (const uint32_t others : gate->flags) flags |= others;
  return flags;
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
  std::erase_if(gates_, [](const Gate& gate) {
    return !gate.arrived || gate.heard != gate.edges;
  });
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
