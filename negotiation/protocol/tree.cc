#include "negotiation/protocol/tree.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hvdlite::negotiation {
namespace {

// Appends the children of the member at `index` of a tree of `members`.
void AppendChildren(absl::Span<const int> members, int index, int arity,
                    std::vector<int>& children) {
  const auto size = static_cast<int64_t>(members.size());
  const int64_t first = int64_t{index} * arity + 1;
  for (int64_t i = first; i < std::min(first + arity, size); ++i) {
    children.push_back(members[i]);
  }
}

int ParentOf(int rank, int arity, const WorldLayout& layout) {
  if (layout.local_rank(rank) > 0) {
    return layout.RanksOnHostOf(rank)[(layout.local_rank(rank) - 1) / arity];
  }
  const int index = layout.leader_index(rank);
  return index == 0 ? -1 : layout.leaders()[(index - 1) / arity];
}

std::vector<int> ChildrenOf(int rank, int arity, const WorldLayout& layout) {
  std::vector<int> children;
  AppendChildren(layout.RanksOnHostOf(rank), layout.local_rank(rank), arity,
                 children);
  if (layout.local_rank(rank) == 0) {
    AppendChildren(layout.leaders(), layout.leader_index(rank), arity,
                   children);
  }
  std::sort(children.begin(), children.end());
  return children;
}

}  // namespace

WorldLayout::WorldLayout(std::vector<int> host_of_rank,
                         std::vector<std::string> host_names)
    : host_of_rank_(std::move(host_of_rank)),
      host_names_(std::move(host_names)) {
  host_names_.resize(host_of_rank_.size());
  local_rank_.reserve(host_of_rank_.size());
  for (int rank = 0; rank < world_size(); ++rank) {
    const auto host = static_cast<size_t>(host_of_rank_[rank]);
    if (host >= ranks_of_host_.size()) {
      ranks_of_host_.resize(host + 1);
      leader_index_.resize(host + 1);
    }
    std::vector<int>& local = ranks_of_host_[host];
    if (local.empty()) {
      leader_index_[host] = static_cast<int>(leaders_.size());
      leaders_.push_back(rank);
    }
    local_rank_.push_back(static_cast<int>(local.size()));
    local.push_back(rank);
  }
}

std::string WorldLayout::NameOf(int rank) const {
  return absl::StrCat("rank ", rank, " (", host_names_[rank], ")");
}

absl::Span<const int> WorldLayout::RanksOnHostOf(int rank) const {
  return ranks_of_host_[host_of_rank_[rank]];
}

TreePosition PlaceInTree(int rank, int arity, const WorldLayout& layout) {
  TreePosition position;
  position.parent = ParentOf(rank, arity, layout);
  for (const int child : ChildrenOf(rank, arity, layout)) {
    std::vector<int> subtree = {child};
    int height = 0;
    // Level by level.
    for (size_t begin = 0; begin < subtree.size(); ++height) {
      const size_t end = subtree.size();
      for (; begin < end; ++begin) {
        const std::vector<int> below =
            ChildrenOf(subtree[begin], arity, layout);
        subtree.insert(subtree.end(), below.begin(), below.end());
      }
    }
    position.height = std::max(position.height, height);
    position.children.push_back({child, RankRuns(subtree)});
  }
  return position;
}

}  // namespace hvdlite::negotiation
