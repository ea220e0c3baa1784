#include "negotiation/protocol/id_pool.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace hvdlite::negotiation {

IdPool::IdPool(uint64_t max_idle_uses)
    : max_idle_uses_(std::max<uint64_t>(max_idle_uses, 1)) {}

bool IdPool::IsUsedAgain(uint64_t fingerprint) {
  if (used_once_.erase(fingerprint) > 0 ||
      used_once_before_.erase(fingerprint) > 0) {
    return true;
  }
  if (used_once_.size() >= max_idle_uses_) {
    used_once_before_ = std::exchange(used_once_, {});
  }
  used_once_.insert(fingerprint);
  ++uses_;
  return false;
}

uint32_t IdPool::Take() {
  uint32_t id = 0;
  if (free_.empty()) {
    id = static_cast<uint32_t>(last_use_.size());
    last_use_.push_back(0);
  } else {
    std::pop_heap(free_.begin(), free_.end(), std::greater<>());
    id = free_.back();
    free_.pop_back();
  }
  OnUse(id);
  return id;
}

void IdPool::OnUse(uint32_t id) { last_use_[id] = ++uses_; }

std::vector<uint32_t> IdPool::TakeForgotten() {
  std::vector<uint32_t> forgotten;
  for (const uint32_t id : released_) {
    if (std::exchange(last_use_[id], 0) != 0) forgotten.push_back(id);
  }
  released_.clear();
  // All ids are checked together from time to time. So each message is about
  // many ids, and the check costs little per use.
  if (uses_ >= next_sweep_) {
    next_sweep_ = uses_ + std::max<uint64_t>(max_idle_uses_ / 8, 1);
    for (uint32_t id = 0; id < last_use_.size(); ++id) {
      if (last_use_[id] == 0 || IdleUses(id) < max_idle_uses_) continue;
      last_use_[id] = 0;
      forgotten.push_back(id);
    }
  }
  std::sort(forgotten.begin(), forgotten.end());
  return forgotten;
}

void IdPool::Retire(absl::Span<const uint32_t> ids) {
  for (const uint32_t id : ids) last_use_[id] = 0;
}

void IdPool::Return(absl::Span<const uint32_t> ids) {
  for (const uint32_t id : ids) {
    free_.push_back(id);
    std::push_heap(free_.begin(), free_.end(), std::greater<>());
  }
}

}  // namespace hvdlite::negotiation
