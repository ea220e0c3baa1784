// TensorMemoryRegistry: the memory for tensors that this process has allocated.
#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "collective/communicator.h"
#include "collective/shm/shared_mapping.h"

namespace hvdlite::collective {

// Finds the mapping that a tensor lies in. Does not keep the memory alive.
// Thread-safe.
class TensorMemoryRegistry {
 public:
  absl::StatusOr<TensorMemory> Allocate(size_t bytes);

  // The mapping that holds all of `bytes`, or null.
  std::shared_ptr<SharedMapping> Find(absl::Span<const std::byte> bytes) const;

 private:
  mutable base::Mutex mutex_;
  std::map<const std::byte*, std::weak_ptr<SharedMapping>> by_begin_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvdlite::collective
