#include "negotiation/protocol/tensor_table.h"

#include <algorithm>
#include <utility>

namespace hvdlite::negotiation {

void TensorSlot::ClearInstance() {
  arrived = arrived_by_id = 0;
  variants.clear();
  present = reported = urgent = false;
  step = 0;
  token.reset();
  if (id.has_value()) process_set = request.process_set;
}

TensorSlot& TensorTable::FindOrInsert(const std::string& name) {
  std::unique_ptr<TensorSlot>& slot = by_name_[name];
  if (slot == nullptr) {
    slot = std::make_unique<TensorSlot>();
    slot->name = name;
  }
  return *slot;
}

TensorSlot* TensorTable::Find(const std::string& name) {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second.get();
}

bool TensorTable::IsRetired(uint32_t id) const {
  return id < by_id_.size() && by_id_[id] == nullptr;
}

TensorSlot& TensorTable::Register(uint32_t id, Request request) {
  TensorSlot& slot = FindOrInsert(request.name);
  if (slot.id.has_value()) by_id_[*slot.id] = nullptr;
  if (id >= by_id_.size()) by_id_.resize(id + 1, nullptr);
  by_id_[id] = &slot;
  slot.id = id;
  slot.version = ++versions_;
  slot.process_set = request.process_set;
  slot.request_bytes = request.size_bytes();
  slot.request = std::move(request);
  return slot;
}

void TensorTable::EndInstance(TensorSlot& slot) {
  slot.ClearInstance();
  if (slot.id.has_value()) return;
  const std::string name = slot.name;
  by_name_.erase(name);
}

std::vector<TensorSlot*> TensorTable::All() {
  std::vector<TensorSlot*> slots;
  slots.reserve(by_name_.size());
  for (auto& [name, slot] : by_name_) slots.push_back(slot.get());
  std::sort(slots.begin(), slots.end(),
            [](const TensorSlot* a, const TensorSlot* b) {
              return a->name < b->name;
            });
  return slots;
}

void TensorTable::EraseProcessSet(ProcessSetId process_set) {
  absl::erase_if(by_name_, [&](const auto& entry) {
    const TensorSlot& slot = *entry.second;
    if (slot.process_set != process_set) return false;
    if (slot.id.has_value()) by_id_[*slot.id] = nullptr;
    return true;
  });
}

}  // namespace hvdlite::negotiation
