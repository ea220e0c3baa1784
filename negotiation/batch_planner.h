// BatchPlanner: the root's choice of what is reduced next.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "negotiation/tensor_table.h"

namespace hvdlite::negotiation {

// Tensors that are ready on all ranks wait here, in groups that can be reduced
// together: of one collective, dtype, op, scale and root. A batch starts when a
// group holds a tensor that somebody waits for, or `min_batch_bytes`; it takes
// from that group, first come first served, up to `fusion_threshold_bytes`.
// Pure: no I/O, threads or clock.
class BatchPlanner {
 public:
  BatchPlanner(int64_t fusion_threshold_bytes, int64_t min_batch_bytes);

  // `slot` (all ranks agree on `request`) stays with the planner until Next
  // gives it out. If `slot.present` is false it needs no reduction. Reads
  // slot.urgent.
  void Add(TensorSlot& slot, const Request& request);

  // Somebody waits for a slot that was added.
  void MarkUrgent(TensorSlot& slot);

  // From now on everything starts at once.
  void Flush() { flushing_ = true; }

  struct Batch {
    std::vector<TensorSlot*> tensors;  // reduced together
    std::vector<TensorSlot*> absent;   // end without a reduction
  };
  // The batch to start now that the data plane is idle, or nullopt.
  std::optional<Batch> Next();

  // Nothing waits.
  bool empty() const { return groups_.empty() && absent_.empty(); }

 private:
  struct Entry {
    TensorSlot* slot;
    int64_t bytes;
    uint64_t order;  // of arrival
  };
  struct Group {
    Request key;  // name and shape left out
    std::deque<Entry> entries;
    int64_t bytes = 0;
    int urgent = 0;
  };

  bool Starts(const Group& group) const;

  const int64_t fusion_threshold_bytes_;
  const int64_t min_batch_bytes_;
  bool flushing_ = false;
  bool absent_urgent_ = false;
  uint64_t next_order_ = 0;
  std::vector<Group> groups_;  // none of them empty
  std::vector<TensorSlot*> absent_;
};

}  // namespace hvdlite::negotiation
