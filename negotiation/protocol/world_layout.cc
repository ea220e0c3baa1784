#include "negotiation/protocol/world_layout.h"

#include <utility>

namespace hvdlite::negotiation {

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

absl::Span<const int> WorldLayout::RanksOnHostOf(int rank) const {
  return ranks_of_host_[host_of_rank_[rank]];
}

}  // namespace hvdlite::negotiation
