#include "negotiation/protocol/batch_planner.h"

#include <algorithm>
#include <utility>

namespace hvdlite::negotiation {
namespace {

bool CanRunTogether(const Request& a, const Request& b) {
  return a.process_set == b.process_set && a.collective == b.collective &&
         a.op == b.op && a.average == b.average &&
         a.compression == b.compression &&
         a.prescale_factor == b.prescale_factor &&
         a.postscale_factor == b.postscale_factor && a.root_rank == b.root_rank;
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
  auto group = std::find_if(
      groups_.begin(), groups_.end(),
      [&](const Group& g) { return CanRunTogether(g.key, request); });
  if (group == groups_.end()) {
    group = groups_.insert(groups_.end(), Group{request, with_root, {}});
  }
  // Nobody knows the size before all ranks have told their rows: let it start.
  const int64_t bytes = request.rows_differ()       ? min_batch_bytes_
                        : &request == &slot.request ? slot.request_bytes
                                                    : request.size_bytes();
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
    for (size_t i = group.first; i < group.entries.size(); ++i) {
      if (group.entries[i].slot != &slot) continue;
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
    return std::make_pair(group.urgent == 0, group.entries[group.first].order);
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
  for (; group.first < group.entries.size(); ++group.first) {
    const Entry& entry = group.entries[group.first];
    if (!batch.tensors.empty() &&
        bytes + entry.bytes > fusion_threshold_bytes_) {
      break;
    }
    bytes += entry.bytes;
    if (entry.slot->urgent) --group.urgent;
    batch.tensors.push_back(entry.slot);
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
    if (group->first == group->entries.size()) {
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
