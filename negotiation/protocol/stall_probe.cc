#include "negotiation/protocol/stall_probe.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "negotiation/protocol/wire_format.h"

namespace hvdlite::negotiation {
namespace {

// Bounds of an answer, whatever the number of ranks.
constexpr size_t kMaxStates = 8;   // ranks whose last submission is included
constexpr size_t kMaxRuns = 64;    // of ranks that are named, per operation
constexpr size_t kMaxSilent = 16;  // named ranks that do not answer
constexpr size_t kMaxStacks = 16;  // texts
constexpr size_t kMaxStacksBytes = 4096;
// The bounds if all ranks report what they are doing.
constexpr size_t kMaxStatesOfEverybody = 256;
constexpr char kMoreStacks[] = "(stacks that differ from those shown)";

// Whether each rank of the world has to do it, joined or not.
bool IsOfWorld(const std::string& name) {
  return name == kShutdownName || name == kEverybodyName;
}

}  // namespace

bool StallProbe::IsAwaited(const Waiting& waiting, int rank) const {
  if (IsOfWorld(waiting.name)) return true;
  return membership_.IsMember(waiting.process_set, rank) &&
         !membership_.has_joined(rank);
}

RankRuns StallProbe::AwaitedOf(const Waiting& waiting,
                               const RankRuns& ranks) const {
  return IsOfWorld(waiting.name)
             ? ranks
             : membership_.Remaining(waiting.process_set, ranks);
}

bool StallProbe::IsSubmitted(const Waiting& waiting, TensorTable& table) const {
  if (waiting.name == kEverybodyName) return false;
  if (waiting.name == kShutdownName) return left_;
  if (waiting.name == kJoinName) return membership_.has_joined(options_.rank);
  const TensorSlot* const slot = table.Find(waiting.name);
  return slot != nullptr && slot->token.has_value();
}

void StallProbe::OnSubmit(const TensorSlot& slot) {
  last_id_.reset();
  if (slot.registrations.empty()) {
    last_name_ = slot.name;
  } else {
    last_id_ = slot.registrations.front()->id;
  }
  last_submit_ns_ = slot.submitted_ns;
}

std::string StallProbe::LastName(TensorTable& table) const {
  const Registration* const last =
      last_id_.has_value() ? table.FindById(*last_id_) : nullptr;
  return last != nullptr ? last->request.name : last_name_;
}

void StallProbe::Begin(const wire::Probe& probe, TensorTable& table,
                       int64_t now_ns) {
  Open open;
  open.number = probe.number();
  // Ranks higher in the tree wait longer, so that the answers from below arrive
  // before.
  open.deadline_ns =
      now_ns +
      absl::ToInt64Nanoseconds(options_.answer_deadline *
                               (tree_.height + (options_.explains ? 0.5 : 0)));
  for (const TreePosition::Child& child : tree_.children) {
    open.unanswered.insert(child.rank);
  }
  for (int i = 0; i < probe.names_size(); ++i) {
    Waiting& waiting = open.waiting.emplace_back();
    waiting.name = probe.names(i);
    if (i < probe.process_sets_size()) {
      waiting.process_set = probe.process_sets(i);
    }
    open.everybody = open.everybody || waiting.name == kEverybodyName;
    waiting.pending = IsSubmitted(waiting, table);
    if (waiting.pending || !IsAwaited(waiting, options_.rank)) continue;
    waiting.missing.Add({options_.rank, options_.rank});
    if (!open.states.empty()) continue;
    wire::RankState& state = open.states.emplace_back();
    state.set_rank(options_.rank);
    state.set_last_name(LastName(table));
    state.set_since_ms((now_ns - last_submit_ns_) / 1'000'000);
    state.set_done_name(done_name_);
    state.set_done_ms((now_ns - done_ns_) / 1'000'000);
  }
  // Without an explanation, a missing rank counts as stuck.
  open.awaits_explanation = options_.explains && !open.states.empty();
  if (!open.awaits_explanation) {
    for (Waiting& waiting : open.waiting) {
      waiting.stuck = !waiting.missing.empty();
    }
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
    open_->waiting[i].stuck |= stall.stuck();
    open_->waiting[i].computing |= stall.computing();
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
  for (const wire::Stacks& stacks : answer.stacks()) {
    AddStacks(stacks.text(), FromWire(stacks.ranks(), world_size));
  }
}

// ---- Explanations, and looks from outside.

void StallProbe::AddStanding(Standing standing, Waiting& waiting) {
  if (standing == Standing::kStuck) waiting.stuck = true;
  if (standing == Standing::kComputing) waiting.computing = true;
}

void StallProbe::AddStacks(const std::string& text, const RankRuns& ranks) {
  if (text.empty() || ranks.empty()) return;
  auto& all = open_->stacks;
  const auto find = [&](const std::string& wanted) {
    return absl::c_find_if(
        all, [&](const auto& stacks) { return stacks.first == wanted; });
  };
  auto found = find(text);
  if (found == all.end() && all.size() >= kMaxStacks) found = find(kMoreStacks);
  if (found != all.end()) {
    found->second.Add(ranks);
  } else {
    all.emplace_back(
        all.size() < kMaxStacks ? text.substr(0, kMaxStacksBytes) : kMoreStacks,
        ranks);
  }
}

void StallProbe::Explain(Explanation explanation, bool waits) {
  if (!awaits_explanation()) return;
  open_->awaits_explanation = false;
  explanation.process.waits_for_ranks = waits;
  const Standing standing = StandingOf(explanation.process);
  for (Waiting& waiting : open_->waiting) {
    if (waiting.missing.Contains(options_.rank)) AddStanding(standing, waiting);
  }
  for (wire::RankState& state : open_->states) {
    if (state.rank() != options_.rank) continue;
    ToWire(explanation.process, state.mutable_process());
  }
  AddStacks(explanation.stacks, RankRuns({options_.rank}));
}

int64_t StallProbe::NextLookNs() const {
  // Both looks happen before an answer is overdue, usually one second apart.
  return open_->deadline_ns -
         absl::ToInt64Nanoseconds(options_.answer_deadline *
                                  (open_->looks == 0 ? 0.75 : 0.25));
}

std::vector<int> StallProbe::TakeLooks(int64_t now_ns) {
  if (!options_.explains || !open_.has_value() || open_->looks >= 2 ||
      open_->unanswered.empty() || now_ns < NextLookNs()) {
    return {};
  }
  ++open_->looks;
  std::vector<int> ranks(open_->unanswered.begin(), open_->unanswered.end());
  absl::c_sort(ranks);
  return ranks;
}

void StallProbe::OnLook(int child_rank, const ProcessSample& sample) {
  if (!open_.has_value()) return;
  Watched& watched = open_->watched[child_rank];
  watched.look = LookOf(watched.first.value_or(sample), sample);
  watched.look->from_outside = true;
  watched.first = sample;
}

void StallProbe::OnSilent(const TreePosition::Child& child) {
  open_->silent.push_back(child.rank);
  const auto watched = open_->watched.find(child.rank);
  const bool seen =
      watched != open_->watched.end() && watched->second.look.has_value();
  const Standing standing =
      seen ? StandingOf(*watched->second.look) : Standing::kStuck;
  for (Waiting& waiting : open_->waiting) {
    waiting.silent.Add(AwaitedOf(waiting, child.subtree));
    if (!AwaitedOf(waiting, child.subtree).empty()) {
      AddStanding(standing, waiting);
    }
  }
  if (!seen || open_->waiting.empty()) return;
  wire::RankState& state = open_->states.emplace_back();
  state.set_rank(child.rank);
  ToWire(*watched->second.look, state.mutable_process());
}

void StallProbe::KeepLowest(Open& open) {
  std::set<int> lowest;
  const size_t max_states = open.everybody ? kMaxStatesOfEverybody : kMaxStates;
  for (Waiting& waiting : open.waiting) {
    for (const RankRuns* const ranks : {&waiting.missing, &waiting.silent}) {
      for (const int rank : ranks->Lowest(max_states)) lowest.insert(rank);
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
  if ((!open_->unanswered.empty() || open_->awaits_explanation) &&
      now_ns < open_->deadline_ns) {
    return std::nullopt;
  }
  // The explanation has not come in time: nothing is known.
  Explain({}, /*waits=*/false);
  for (const TreePosition::Child& child : tree_.children) {
    if (open_->unanswered.contains(child.rank)) OnSilent(child);
  }
  KeepLowest(*open_);
  wire::Answer answer;
  answer.set_probe(open_->number);
  for (const Waiting& waiting : open_->waiting) {
    wire::StallAnswer* const stall = answer.add_stalls();
    ToWire(waiting.missing, stall->mutable_missing());
    ToWire(waiting.silent, stall->mutable_silent());
    stall->set_pending(waiting.pending);
    stall->set_stuck(waiting.stuck);
    stall->set_computing(waiting.computing);
  }
  for (wire::RankState& state : open_->states) {
    *answer.add_states() = std::move(state);
  }
  answer.mutable_silent()->Assign(open_->silent.begin(), open_->silent.end());
  answer.set_overdue(open_->overdue);
  for (auto& [text, ranks] : open_->stacks) {
    ranks.Truncate(kMaxRuns);
    wire::Stacks* const stacks = answer.add_stacks();
    stacks->set_text(text);
    ToWire(ranks, stacks->mutable_ranks());
  }
  open_.reset();
  return answer;
}

std::optional<int64_t> StallProbe::next_deadline_ns() const {
  if (!open_.has_value() ||
      (open_->unanswered.empty() && !open_->awaits_explanation)) {
    return std::nullopt;
  }
  return options_.explains && !open_->unanswered.empty() && open_->looks < 2
             ? NextLookNs()
             : open_->deadline_ns;
}

}  // namespace hvdlite::negotiation
