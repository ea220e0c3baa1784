// Reduces buckets without packing, in memory that all ranks of the node have
// mapped.
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

// Finds the mapping that contains a tensor. Does not keep the memory alive.
// Thread-safe.
class TensorMemoryRegistry {
 public:
  absl::StatusOr<TensorMemory> Allocate(size_t bytes);

  // The mapping that contains all of `bytes`, or null.
  std::shared_ptr<SharedMapping> Find(absl::Span<const std::byte> bytes) const;

 private:
  mutable base::Mutex mutex_;
  std::map<const std::byte*, std::weak_ptr<SharedMapping>> by_begin_
      ABSL_GUARDED_BY(mutex_);
};

// A rank's description of a bucket for the other ranks of its node. Plain
// bytes.
struct ZeroCopyNote {
  uint8_t eligible = 0;  // all tensors in one mapping, in place
  SharedMapping::Address address;
  uint64_t layout = 0;  // equal numbers mean equal layouts of the tensors
  // Identifies the mappings of all ranks that this rank has attached; equal
  // numbers mean equal mappings.
  uint64_t attached = 0;
};

// Finds a bucket's memory on this rank and on the other ranks. One calling
// thread at a time.
class ZeroCopyBuckets {
 public:
  ZeroCopyBuckets(int rank, int size,
                  std::shared_ptr<const TensorMemoryRegistry> registry);

  // This rank's note about a bucket.
  ZeroCopyNote Describe(absl::Span<const FusedTensor> tensors);

  // Compares the notes of all ranks. If all are eligible and alike, and the
  // ranks have already attached each other's memory, returns the beginnings of
  // the ranks' mappings. A tensor then has the same offset in every mapping.
  // Otherwise returns nullopt, on every rank; if all are eligible and alike, it
  // attaches the memory for the next bucket.
  std::optional<std::vector<std::byte*>> Agree(
      absl::Span<const ZeroCopyNote> of_rank);

 private:
  // The value that `ZeroCopyNote::attached` must have for these mappings.
  static uint64_t NumberOf(absl::Span<const ZeroCopyNote> of_rank);

  void Attach(absl::Span<const ZeroCopyNote> of_rank, uint64_t number);

  const int rank_;
  const int size_;
  const std::shared_ptr<const TensorMemoryRegistry> registry_;

  // For each mapping of this rank, by its nonce: the mappings of the others.
  struct Attached {
    std::weak_ptr<SharedMapping> own;
    uint64_t number = 0;
    std::vector<std::shared_ptr<SharedMapping>> of_rank;  // null: this rank
  };
  std::map<uint64_t, Attached> attached_;
};

}  // namespace hvdlite::collective
