#include "negotiation/protocol/membership.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace hvdlite::negotiation {

Membership::Membership(int rank, int world_size, const TreePosition& tree)
    : rank_(rank), world_size_(world_size), tree_(tree) {
  Add(0, {});
}

void Membership::Add(ProcessSetId id, absl::Span<const int> members) {
  Set& set = sets_[id];
  // The set is replaced in place: a set that could not grow must not be
  // destroyed.
  set.members.clear();
  set.members.insert(members.begin(), members.end());
  set.edges = ComputeEdges(id);
  UpdateRemaining(id, set);
}

void Membership::Remove(ProcessSetId id) { sets_.erase(id); }

bool Membership::exists(ProcessSetId id) const { return sets_.contains(id); }

int Membership::size(ProcessSetId id) const {
  return id == 0 ? world_size_ : static_cast<int>(sets_.at(id).members.size());
}

bool Membership::IsMember(ProcessSetId id, int rank) const {
  if (id == 0) return rank >= 0 && rank < world_size_;
  const auto set = sets_.find(id);
  return set != sets_.end() && set->second.members.contains(rank);
}

bool Membership::Join(int rank) {
  const int source = SourceOf(rank);
  if (!joined_.insert(rank).second || source < 0) return false;
  bool last = false;
  for (auto& [id, set] : sets_) {
    if (!IsMember(id, rank) || --set.remaining[source] > 0) continue;
    UpdateSources(id, set);
    last = true;
  }
  return last;
}

void Membership::EndJoin() {
  joined_.clear();
  for (auto& [id, set] : sets_) UpdateRemaining(id, set);
}

bool Membership::everyone_joined() const {
  return static_cast<int>(joined_.size()) == world_size_;
}

std::vector<int> Membership::JoinedMembers(ProcessSetId id) const {
  std::vector<int> joined;
  for (const int rank : joined_) {
    if (IsMember(id, rank)) joined.push_back(rank);
  }
  std::sort(joined.begin(), joined.end());
  return joined;
}

uint64_t Membership::SourcesOf(ProcessSetId id) const {
  if (id == 0) return world_sources_;
  const auto set = sets_.find(id);
  return set == sets_.end() ? 0 : set->second.sources;
}

int Membership::CountRemaining(ProcessSetId id) const {
  const std::vector<int>& remaining = sets_.at(id).remaining;
  return std::accumulate(remaining.begin(), remaining.end(), 0);
}

RankRuns Membership::Remaining(ProcessSetId id, const RankRuns& ranks) const {
  if (id == 0 && joined_.empty()) return ranks;
  RankRuns remaining;
  for (const RankRuns::Run& run : ranks.runs()) {
    for (int rank = run.first; rank <= run.last; ++rank) {
      if (IsMember(id, rank) && !has_joined(rank)) remaining.Add({rank, rank});
    }
  }
  return remaining;
}

int Membership::SourceOf(int rank) const {
  if (rank == rank_) return 0;
  for (size_t i = 0; i < tree_.children.size(); ++i) {
    if (tree_.children[i].subtree.Contains(rank))
      return static_cast<int>(i) + 1;
  }
  return -1;
}

uint64_t Membership::EdgesOf(ProcessSetId id) const {
  const auto set = sets_.find(id);
  return set == sets_.end() ? 0 : set->second.edges;
}

uint64_t Membership::ComputeEdges(ProcessSetId id) const {
  uint64_t edges = 0;
  if (id == 0) {
    edges = (uint64_t{2} << tree_.children.size()) - 2;
    return tree_.parent >= 0 ? edges | 1 : edges;
  }
  for (const int member : sets_.at(id).members) {
    const int source = SourceOf(member);
    if (source != 0) edges |= uint64_t{1} << std::max(source, 0);
  }
  return edges;
}

void Membership::UpdateRemaining(ProcessSetId id, Set& set) {
  set.remaining.assign(tree_.children.size() + 1, 0);
  if (id == 0) {
    set.remaining[0] = 1;
    for (size_t i = 0; i < tree_.children.size(); ++i) {
      set.remaining[i + 1] = tree_.children[i].subtree.size();
    }
  }
  for (const int rank : set.members) {
    const int source = SourceOf(rank);
    if (source >= 0) ++set.remaining[source];
  }
  for (const int rank : joined_) {
    const int source = SourceOf(rank);
    if (source >= 0 && IsMember(id, rank)) --set.remaining[source];
  }
  UpdateSources(id, set);
}

void Membership::UpdateSources(ProcessSetId id, Set& set) {
  set.sources = 0;
  for (size_t source = 0; source < set.remaining.size(); ++source) {
    if (set.remaining[source] > 0) set.sources |= uint64_t{1} << source;
  }
  if (id == 0) world_sources_ = set.sources;
}

std::string DescribeRemoved(ProcessSetId id) {
  return absl::StrCat("process set ", id,
                      " has been removed by remove_process_set()");
}

}  // namespace hvdlite::negotiation
