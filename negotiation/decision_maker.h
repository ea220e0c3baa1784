// DecisionMaker: what the root does beyond what every rank does.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "negotiation/batch_planner.h"
#include "negotiation/messages.pb.h"
#include "negotiation/tensor_table.h"

namespace hvdlite::negotiation {

// Turns tensors that are ready on all ranks, and ranks that want to leave, into
// decisions (still without numbers). Pure: no I/O, threads or clock.
class DecisionMaker {
 public:
  DecisionMaker(int world_size, int64_t fusion_threshold_bytes,
                int64_t min_batch_bytes);

  // Every rank has submitted the slot's tensor. Returns the failure if they do
  // not agree about it; else it stays here until a batch takes it.
  std::vector<wire::Decision> OnReady(TensorSlot& slot);

  // Somebody waits for a slot that was passed to OnReady.
  void MarkUrgent(TensorSlot& slot) { planner_.MarkUrgent(slot); }

  // A rank leaves; decided once what is ready has been started.
  void OnDeparture(const wire::Departure& departure);

  // What is decided now that the data plane is idle, in this order.
  std::vector<wire::Decision> Next();

 private:
  // Whether it is worth an id; remembers names that are not, so far.
  bool IsUsedAgain(const TensorSlot& slot);
  void Register(const TensorSlot& slot, wire::Registration* registration);
  void DescribeBatch(const BatchPlanner::Batch& planned, wire::Batch* batch);

  const int world_size_;
  BatchPlanner planner_;
  uint32_t next_id_ = 0;
  absl::flat_hash_set<std::string> used_once_;
  std::deque<wire::Departure> departures_;  // not decided yet
  int departed_ = 0;
};

}  // namespace hvdlite::negotiation
