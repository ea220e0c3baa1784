// Batches that are reduced where their tensors lie, in memory that all ranks of
// the node have mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/mutex.h"
#include "collective/communicator.h"
#include "collective/fusion/fusion.h"
#include "collective/shm/shared_memory.h"

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

// What a rank tells the others of its node about a batch. Plain bytes.
struct ZeroCopyNote {
  uint8_t eligible = 0;  // all tensors lie in one mapping, in place
  SharedMapping::Address address;
  uint64_t layout = 0;  // of the tensors in it: equal numbers, equal layouts
  // Of the mappings of all ranks that this rank has attached; equal numbers,
  // equal mappings.
  uint64_t attached = 0;
};

// Where one rank's batch lies, and where the other ranks' batches do. One
// calling thread at a time.
class ZeroCopyBatches {
 public:
  ZeroCopyBatches(int rank, int size,
                  std::shared_ptr<const TensorMemoryRegistry> registry);

  // This rank's part of the agreement about a batch.
  ZeroCopyNote Describe(absl::Span<const FusedTensor> tensors);

  // Looks at every rank's part. If all are eligible, alike, and have attached
  // one another's memory before: returns the beginnings of the ranks' mappings,
  // so that a tensor at an offset of this rank's mapping lies at the same
  // offset of theirs. Else nothing, on every rank; and if all are eligible and
  // alike, attaches, so that the next batch may be more lucky.
  std::optional<std::vector<std::byte*>> Agree(
      absl::Span<const ZeroCopyNote> of_rank);

 private:
  // The number that `ZeroCopyNote::attached` must have for these mappings.
  static uint64_t NumberOf(absl::Span<const ZeroCopyNote> of_rank);

  void Attach(absl::Span<const ZeroCopyNote> of_rank, uint64_t number);

  const int rank_;
  const int size_;
  const std::shared_ptr<const TensorMemoryRegistry> registry_;

  // By the nonce of this rank's mapping: what the others have beside it.
  struct Attached {
    std::weak_ptr<SharedMapping> own;
    uint64_t number = 0;
    std::vector<std::shared_ptr<SharedMapping>> of_rank;  // null: this rank
  };
  std::map<uint64_t, Attached> attached_;
};

}  // namespace hvdlite::collective
