#include "negotiation/membership.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hvdlite::negotiation {

Membership::Membership(int rank, int world_size, const TreePosition& tree)
    : rank_(rank), world_size_(world_size), tree_(tree) {
  Add(0, {});
}

void Membership::Add(ProcessSetId id, absl::Span<const int> members) {
  sets_[id].members = {members.begin(), members.end()};
  sets_[id].edges = ComputeEdges(id);
  UpdateSources(id);
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

void Membership::Join(int rank) {
  joined_.insert(rank);
  UpdateSources();
}

void Membership::EndJoin() {
  joined_.clear();
  UpdateSources();
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

RankRuns Membership::Remaining(ProcessSetId id, const RankRuns& ranks) const {
  if (id == 0 && joined_.empty()) return ranks;
  RankRuns remaining;
  for (const RankRuns::Run& run : ranks.runs()) {
    for (int rank = run.first; rank <= run.last; ++rank) {
      if (TakesPart(id, rank)) remaining.Add({rank, rank});
    }
  }
  return remaining;
}

uint64_t Membership::ComputeSources(ProcessSetId id) const {
  uint64_t sources = TakesPart(id, rank_) ? 1 : 0;
  for (size_t i = 0; i < tree_.children.size(); ++i) {
    if (AnyTakesPart(id, tree_.children[i].subtree))
      sources |= uint64_t{2} << i;
  }
  return sources;
}

uint64_t Membership::EdgesOf(ProcessSetId id) const {
  const auto set = sets_.find(id);
  return set == sets_.end() ? 0 : set->second.edges;
}

uint64_t Membership::ComputeEdges(ProcessSetId id) const {
  uint64_t edges = 0;
  const auto add_edge_to = [&](int rank) {
    for (size_t i = 0; i < tree_.children.size(); ++i) {
      if (!tree_.children[i].subtree.Contains(rank)) continue;
      edges |= uint64_t{2} << i;
      return;
    }
    if (rank != rank_) edges |= 1;
  };
  if (id == 0) {
    for (const TreePosition::Child& child : tree_.children) {
      add_edge_to(child.rank);
    }
    if (tree_.parent >= 0) add_edge_to(tree_.parent);
  } else {
    for (const int member : sets_.at(id).members) add_edge_to(member);
  }
  return edges;
}

bool Membership::AnyTakesPart(ProcessSetId id, const RankRuns& ranks) const {
  for (const RankRuns::Run& run : ranks.runs()) {
    for (int rank = run.first; rank <= run.last; ++rank) {
      if (TakesPart(id, rank)) return true;
    }
  }
  return false;
}

void Membership::UpdateSources() {
  for (const auto& [id, set] : sets_) UpdateSources(id);
}

void Membership::UpdateSources(ProcessSetId id) {
  uint64_t& sources = id == 0 ? world_sources_ : sets_.at(id).sources;
  sources = ComputeSources(id);
}

std::string DescribeRemoved(ProcessSetId id) {
  return absl::StrCat("process set ", id,
                      " has been removed by remove_process_set()");
}

}  // namespace hvdlite::negotiation
