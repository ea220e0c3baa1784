#include "negotiation/batch_planner.h"

#include <algorithm>
#include <utility>

namespace hvdlite::negotiation {
namespace {

// What two requests must share to run together.
Request FusionKey(const Request& request) {
  Request key = request;
  key.name.clear();
  key.tensors.clear();
  key.differentiable = false;
  return key;
}

}  // namespace

BatchPlanner::BatchPlanner(int64_t fusion_threshold_bytes,
                           int64_t min_batch_bytes)
    : fusion_threshold_bytes_(fusion_threshold_bytes),
      min_batch_bytes_(min_batch_bytes) {}

void BatchPlanner::Add(TensorSlot& slot, const Request& request,
                       bool with_root) {
  if (!slot.present) {
    Absent& absent = absent_[slot.process_set];
    absent.with_root = with_root;
    absent.urgent = absent.urgent || slot.urgent;
    absent.slots.push_back(&slot);
    return;
  }
  Request key = FusionKey(request);
  auto group = std::find_if(groups_.begin(), groups_.end(),
                            [&](const Group& g) { return g.key == key; });
  if (group == groups_.end()) {
    group = groups_.insert(groups_.end(), Group{std::move(key), with_root, {}});
  }
  // Nobody knows the size before all ranks have told their rows: let it start.
  const int64_t bytes =
      request.rows_differ() ? min_batch_bytes_ : request.size_bytes();
  group->entries.push_back({&slot, bytes, next_order_++});
  group->bytes += bytes;
  if (slot.urgent) ++group->urgent;
}

void BatchPlanner::MarkUrgent(TensorSlot& slot) {
  if (slot.urgent) return;
  slot.urgent = true;
  if (!slot.present) {
    absent_[slot.process_set].urgent = true;
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

bool BatchPlanner::holds(ProcessSetId process_set) const {
  return absent_.contains(process_set) ||
         std::any_of(groups_.begin(), groups_.end(), [&](const Group& group) {
           return group.key.process_set == process_set;
         });
}

bool BatchPlanner::Starts(const Group& group, bool root_is_idle) const {
  if (group.with_root && !root_is_idle) return false;
  return Flushes(group.key.process_set) || group.urgent > 0 ||
         group.bytes >= min_batch_bytes_;
}

BatchPlanner::Group* BatchPlanner::ChooseGroup(bool root_is_idle) {
  // Of the groups that start, those somebody waits for come first, then the one
  // whose oldest tensor is oldest.
  const auto rank = [](const Group& group) {
    return std::make_pair(group.urgent == 0, group.entries.front().order);
  };
  Group* chosen = nullptr;
  for (Group& group : groups_) {
    if (!Starts(group, root_is_idle)) continue;
    if (chosen == nullptr || rank(group) < rank(*chosen)) chosen = &group;
  }
  return chosen;
}

void BatchPlanner::TakeTensors(Group& group, Batch& batch) {
  int64_t bytes = 0;
  while (!group.entries.empty()) {
    const Entry& entry = group.entries.front();
    if (!batch.tensors.empty() &&
        bytes + entry.bytes > fusion_threshold_bytes_) {
      break;
    }
    bytes += entry.bytes;
    if (entry.slot->urgent) --group.urgent;
    batch.tensors.push_back(entry.slot);
    group.entries.pop_front();
  }
  group.bytes -= bytes;
}

void BatchPlanner::TakeAbsent(ProcessSetId process_set, Batch& batch) {
  const auto absent = absent_.find(process_set);
  if (absent == absent_.end()) return;
  batch.absent = std::move(absent->second.slots);
  absent_.erase(absent);
}

std::optional<BatchPlanner::Batch> BatchPlanner::Next(bool root_is_idle) {
  Batch batch;
  if (Group* group = ChooseGroup(root_is_idle); group != nullptr) {
    batch.process_set = group->key.process_set;
    batch.with_root = group->with_root;
    TakeTensors(*group, batch);
    if (group->entries.empty()) {
      groups_.erase(groups_.begin() + (group - groups_.data()));
    }
    TakeAbsent(batch.process_set, batch);
    return batch;
  }
  for (const auto& [process_set, absent] : absent_) {
    if (!absent.urgent && !Flushes(process_set)) continue;
    if (absent.with_root && !root_is_idle) continue;
    batch.process_set = process_set;
    batch.with_root = absent.with_root;
    TakeAbsent(batch.process_set, batch);
    return batch;
  }
  return std::nullopt;
}

}  // namespace hvdlite::negotiation
