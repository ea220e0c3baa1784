#include "negotiation/membership.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hvdlite::negotiation {

Membership::Membership(int rank, int world_size, const TreePosition& tree)
    : rank_(rank), tree_(tree) {
  std::vector<int> world(world_size);
  std::iota(world.begin(), world.end(), 0);
  Add(0, std::move(world));
}

void Membership::Add(ProcessSetId id, std::vector<int> members) {
  Set& set = sets_[id];
  set.lookup = {members.begin(), members.end()};
  set.members = std::move(members);
  set.sources = ComputeSources(set);
}

void Membership::Remove(ProcessSetId id) { sets_.erase(id); }

bool Membership::exists(ProcessSetId id) const { return sets_.contains(id); }

absl::Span<const int> Membership::members(ProcessSetId id) const {
  return sets_.at(id).members;
}

bool Membership::IsMember(ProcessSetId id, int rank) const {
  const auto set = sets_.find(id);
  return set != sets_.end() && set->second.lookup.contains(rank);
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
  return joined_.size() == sets_.at(0).members.size();
}

std::vector<int> Membership::JoinedMembers(ProcessSetId id) const {
  std::vector<int> joined;
  if (joined_.empty() || !exists(id)) return joined;
  for (const int member : members(id)) {
    if (has_joined(member)) joined.push_back(member);
  }
  return joined;
}

uint64_t Membership::SourcesOf(ProcessSetId id) const {
  const auto set = sets_.find(id);
  return set == sets_.end() ? 0 : set->second.sources;
}

uint64_t Membership::ComputeSources(const Set& set) const {
  const auto takes_part = [&](int rank) {
    return set.lookup.contains(rank) && !joined_.contains(rank);
  };
  uint64_t sources = takes_part(rank_) ? 1 : 0;
  for (size_t i = 0; i < tree_.children.size(); ++i) {
    const std::vector<int>& subtree = tree_.children[i].subtree;
    if (std::any_of(subtree.begin(), subtree.end(), takes_part)) {
      sources |= uint64_t{2} << i;
    }
  }
  return sources;
}

void Membership::UpdateSources() {
  for (auto& [id, set] : sets_) set.sources = ComputeSources(set);
}

std::string DescribeRemoved(ProcessSetId id) {
  return absl::StrCat("process set ", id,
                      " has been removed by remove_process_set()");
}

}  // namespace hvdlite::negotiation
