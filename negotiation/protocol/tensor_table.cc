#include "negotiation/protocol/tensor_table.h"

#include <algorithm>
#include <utility>

namespace hvdlite::negotiation {

Registration* TensorSlot::Find(const Request& request) const {
  for (Registration* registration : registrations) {
    if (registration->request == request) return registration;
  }
  return nullptr;
}

void TensorSlot::ClearInstance() {
  arrived = arrived_by_id = 0;
  registered = nullptr;
  variants.clear();
  present = reported = urgent = false;
  step = 0;
  token.reset();
}

TensorSlot& TensorTable::FindOrInsert(const std::string& name) {
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) return *found->second;
  auto slot = std::make_unique<TensorSlot>();
  slot->name = name;
  const absl::string_view key = slot->name;
  return *by_name_.emplace(key, std::move(slot)).first->second;
}

TensorSlot* TensorTable::Find(const std::string& name) {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second.get();
}

Registration& TensorTable::Register(uint32_t id, Request request) {
  TensorSlot& slot = FindOrInsert(request.name);
  if (id == by_id_.size()) by_id_.emplace_back();
  by_id_[id] = std::make_unique<Registration>();
  Registration& registration = *by_id_[id];
  registration.id = id;
  registration.version = ++versions_;
  registration.slot = &slot;
  registration.request_bytes = request.size_bytes();
  registration.request = std::move(request);
  slot.registrations.push_back(&registration);
  return registration;
}

void TensorTable::Forget(Registration& registration) {
  TensorSlot& slot = *std::exchange(registration.slot, nullptr);
  registration.version = 0;
  slot.registrations.erase(std::find(slot.registrations.begin(),
                                     slot.registrations.end(), &registration));
  EraseIfUnused(slot);
}

void TensorTable::Free(const std::vector<uint32_t>& ids) {
  for (const uint32_t id : ids) by_id_[id] = nullptr;
}

std::vector<uint32_t> TensorTable::IdsOf(ProcessSetId process_set) const {
  std::vector<uint32_t> ids;
  for (const auto& registration : by_id_) {
    if (registration != nullptr && registration->slot != nullptr &&
        registration->request.process_set == process_set) {
      ids.push_back(registration->id);
    }
  }
  return ids;
}

void TensorTable::EndInstance(TensorSlot& slot) {
  slot.ClearInstance();
  EraseIfUnused(slot);
}

void TensorTable::EraseIfUnused(TensorSlot& slot) {
  if (slot.arrived != 0 || !slot.registrations.empty()) return;
  by_name_.erase(by_name_.find(slot.name));
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

}  // namespace hvdlite::negotiation
