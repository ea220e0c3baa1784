#include "collective/shm/tensor_memory_registry.h"

#include <utility>

#include "base/status_macros.h"

namespace hvdlite::collective {

absl::StatusOr<TensorMemory> TensorMemoryRegistry::Allocate(size_t bytes) {
  HVDLITE_ASSIGN_OR_RETURN(std::shared_ptr<SharedMapping> mapping,
                           SharedMapping::Create(bytes));
  const absl::Span<std::byte> memory = mapping->bytes();
  base::MutexLock lock(&mutex_);
  for (auto entry = by_begin_.begin(); entry != by_begin_.end();) {
    entry = entry->second.expired() ? by_begin_.erase(entry) : ++entry;
  }
  by_begin_[memory.data()] = mapping;
  return TensorMemory{memory, std::move(mapping)};
}

std::shared_ptr<SharedMapping> TensorMemoryRegistry::Find(
    absl::Span<const std::byte> bytes) const {
  base::MutexLock lock(&mutex_);
  auto entry = by_begin_.upper_bound(bytes.data());
  if (entry == by_begin_.begin()) return nullptr;
  std::shared_ptr<SharedMapping> mapping = (--entry)->second.lock();
  if (mapping == nullptr) return nullptr;
  const absl::Span<std::byte> memory = mapping->bytes();
  const bool inside =
      bytes.data() + bytes.size() <= memory.data() + memory.size();
  return inside ? mapping : nullptr;
}

}  // namespace hvdlite::collective
