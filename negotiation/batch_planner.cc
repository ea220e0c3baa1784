#include "negotiation/batch_planner.h"

#include <algorithm>
#include <utility>

namespace hvdlite::negotiation {
namespace {

// What two requests must share to be reduced together.
Request FusionKey(const Request& request) {
  Request key = request;
  key.name.clear();
  key.shape.clear();
  key.strides.clear();
  // A broadcast moves bytes of any dtype.
  if (key.collective == Collective::kBroadcast) key.dtype = {};
  return key;
}

}  // namespace

BatchPlanner::BatchPlanner(int64_t fusion_threshold_bytes,
                           int64_t min_batch_bytes)
    : fusion_threshold_bytes_(fusion_threshold_bytes),
      min_batch_bytes_(min_batch_bytes) {}

void BatchPlanner::Add(TensorSlot& slot, const Request& request) {
  if (!slot.present) {
    absent_.push_back(&slot);
    absent_urgent_ = absent_urgent_ || slot.urgent;
    return;
  }
  Request key = FusionKey(request);
  auto group = std::find_if(groups_.begin(), groups_.end(),
                            [&](const Group& g) { return g.key == key; });
  if (group == groups_.end()) {
    group = groups_.insert(groups_.end(), Group{std::move(key), {}, 0, 0});
  }
  const int64_t bytes = request.size_bytes();
  group->entries.push_back({&slot, bytes, next_order_++});
  group->bytes += bytes;
  if (slot.urgent) ++group->urgent;
}

void BatchPlanner::MarkUrgent(TensorSlot& slot) {
  if (slot.urgent) return;
  slot.urgent = true;
  if (!slot.present) {
    absent_urgent_ = true;
    return;
  }
  for (Group& group : groups_) {
    for (const Entry& entry : group.entries) {
      if (entry.slot != &slot) continue;
      ++group.urgent;
      return;
    }
  }
}

bool BatchPlanner::Starts(const Group& group) const {
  return flushing_ || group.urgent > 0 || group.bytes >= min_batch_bytes_;
}

std::optional<BatchPlanner::Batch> BatchPlanner::Next() {
  // Of the groups that start, those somebody waits for come first, then the one
  // whose oldest tensor is oldest.
  auto chosen = groups_.end();
  for (auto group = groups_.begin(); group != groups_.end(); ++group) {
    if (!Starts(*group)) continue;
    const auto rank = [](const Group& g) {
      return std::make_pair(g.urgent == 0, g.entries.front().order);
    };
    if (chosen == groups_.end() || rank(*group) < rank(*chosen)) chosen = group;
  }
  if (chosen == groups_.end() &&
      (absent_.empty() || !(absent_urgent_ || flushing_))) {
    return std::nullopt;
  }

  // Absent tensors cost nothing: they go along with any batch.
  Batch batch;
  batch.absent = std::exchange(absent_, {});
  absent_urgent_ = false;
  if (chosen == groups_.end()) return batch;

  int64_t bytes = 0;
  while (!chosen->entries.empty()) {
    const Entry& entry = chosen->entries.front();
    if (!batch.tensors.empty() &&
        bytes + entry.bytes > fusion_threshold_bytes_) {
      break;
    }
    bytes += entry.bytes;
    if (entry.slot->urgent) --chosen->urgent;
    batch.tensors.push_back(entry.slot);
    chosen->entries.pop_front();
  }
  chosen->bytes -= bytes;
  if (chosen->entries.empty()) groups_.erase(chosen);
  return batch;
}

}  // namespace hvdlite::negotiation
