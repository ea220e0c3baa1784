#include "negotiation/protocol/stall_probe.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "negotiation/protocol/wire_format.h"

namespace hvdlite::negotiation {
namespace {

// Bounds of an answer, whatever the number of ranks.
constexpr size_t kMaxStates = 8;   // ranks whose last submission is told
constexpr size_t kMaxRuns = 64;    // of ranks that are named, per operation
constexpr size_t kMaxSilent = 16;  // ranks that are said not to answer

}  // namespace

bool StallProbe::IsAwaited(const Waiting& waiting, int rank) const {
  if (waiting.name == kShutdownName) return true;
  return membership_.IsMember(waiting.process_set, rank) &&
         !membership_.has_joined(rank);
}

RankRuns StallProbe::AwaitedOf(const Waiting& waiting,
                               const RankRuns& ranks) const {
  return waiting.name == kShutdownName
             ? ranks
             : membership_.Remaining(waiting.process_set, ranks);
}

bool StallProbe::IsSubmitted(const Waiting& waiting, TensorTable& table) const {
  if (waiting.name == kShutdownName) return left_;
  if (waiting.name == kJoinName) return membership_.has_joined(options_.rank);
  const TensorSlot* const slot = table.Find(waiting.name);
  return slot != nullptr && slot->token.has_value();
}

void StallProbe::OnSubmit(const TensorSlot& slot) {
  last_id_ = slot.id;
  if (!slot.id.has_value()) last_name_ = slot.name;
  last_submit_ns_ = slot.submitted_ns;
}

std::string StallProbe::LastName(TensorTable& table) const {
  const TensorSlot* const slot =
      last_id_.has_value() ? table.FindById(*last_id_) : nullptr;
  return slot != nullptr ? slot->name : last_name_;
}

void StallProbe::Begin(const wire::Probe& probe, TensorTable& table,
                       int64_t now_ns) {
  Open open;
  open.number = probe.number();
  // Higher ranks wait longer, so that the answers from below are in by then.
  open.deadline_ns = now_ns + absl::ToInt64Nanoseconds(
                                  options_.answer_deadline * tree_.height);
  for (const TreePosition::Child& child : tree_.children) {
    open.unanswered.insert(child.rank);
  }
  for (int i = 0; i < probe.names_size(); ++i) {
    Waiting& waiting = open.waiting.emplace_back();
    waiting.name = probe.names(i);
    if (i < probe.process_sets_size()) {
      waiting.process_set = probe.process_sets(i);
    }
    waiting.pending = IsSubmitted(waiting, table);
    if (waiting.pending || !IsAwaited(waiting, options_.rank)) continue;
    waiting.missing.Add({options_.rank, options_.rank});
    if (!open.states.empty()) continue;
    wire::RankState& state = open.states.emplace_back();
    state.set_rank(options_.rank);
    state.set_last_name(LastName(table));
    state.set_since_ms((now_ns - last_submit_ns_) / 1'000'000);
  }
  if (!open.waiting.empty()) {
    table.Visit([&](const TensorSlot& slot) {
      if (slot.has_waited(options_.overdue_after, now_ns)) ++open.overdue;
    });
  }
  open_ = std::move(open);
}

void StallProbe::OnAnswer(int child_rank, const wire::Answer& answer) {
  if (!open_.has_value() || answer.probe() != open_->number ||
      open_->unanswered.erase(child_rank) == 0) {
    return;
  }
  const int world_size = membership_.size(/*id=*/0);
  const size_t stalls = std::min(static_cast<size_t>(answer.stalls_size()),
                                 open_->waiting.size());
  for (size_t i = 0; i < stalls; ++i) {
    const wire::StallAnswer& stall = answer.stalls(static_cast<int>(i));
    open_->waiting[i].missing.Add(FromWire(stall.missing(), world_size));
    open_->waiting[i].silent.Add(FromWire(stall.silent(), world_size));
    open_->waiting[i].pending |= stall.pending();
  }
  const auto exists = [&](int rank) {
    return membership_.IsMember(/*id=*/0, rank);
  };
  for (const wire::RankState& state : answer.states()) {
    if (exists(state.rank())) open_->states.push_back(state);
  }
  for (const uint32_t rank : answer.silent()) {
    if (exists(static_cast<int>(rank))) {
      open_->silent.push_back(static_cast<int>(rank));
    }
  }
  open_->overdue = std::max(open_->overdue, answer.overdue());
}

void StallProbe::KeepLowest(Open& open) {
  absl::flat_hash_set<int> lowest;
  for (Waiting& waiting : open.waiting) {
    for (const int rank : waiting.missing.Lowest(kMaxStates)) {
      lowest.insert(rank);
    }
    waiting.missing.Truncate(kMaxRuns);
    waiting.silent.Truncate(kMaxRuns);
  }
  std::erase_if(open.states, [&](const wire::RankState& state) {
    return !lowest.contains(state.rank());
  });
  absl::c_sort(open.states, [](const auto& a, const auto& b) {
    return a.rank() < b.rank();
  });
  absl::c_sort(open.silent);
  if (open.silent.size() > kMaxSilent) open.silent.resize(kMaxSilent);
}

std::optional<wire::Answer> StallProbe::TakeAnswer(int64_t now_ns) {
  if (!open_.has_value()) return std::nullopt;
  if (!open_->unanswered.empty() && now_ns < open_->deadline_ns) {
    return std::nullopt;
  }
  for (const TreePosition::Child& child : tree_.children) {
    if (!open_->unanswered.contains(child.rank)) continue;
    open_->silent.push_back(child.rank);
    for (Waiting& waiting : open_->waiting) {
      waiting.silent.Add(AwaitedOf(waiting, child.subtree));
    }
  }
  KeepLowest(*open_);
  wire::Answer answer;
  answer.set_probe(open_->number);
  for (const Waiting& waiting : open_->waiting) {
    wire::StallAnswer* const stall = answer.add_stalls();
    ToWire(waiting.missing, stall->mutable_missing());
    ToWire(waiting.silent, stall->mutable_silent());
    stall->set_pending(waiting.pending);
  }
  for (wire::RankState& state : open_->states) {
    *answer.add_states() = std::move(state);
  }
  answer.mutable_silent()->Assign(open_->silent.begin(), open_->silent.end());
  answer.set_overdue(open_->overdue);
  open_.reset();
  return answer;
}

std::optional<int64_t> StallProbe::next_deadline_ns() const {
  if (!open_.has_value() || open_->unanswered.empty()) return std::nullopt;
  return open_->deadline_ns;
}

}  // namespace hvdlite::negotiation
