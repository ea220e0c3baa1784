// DecisionMaker: what the root does beyond what every rank does.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "negotiation/protocol/batch_planner.h"
#include "negotiation/protocol/membership.h"
#include "negotiation/protocol/messages.pb.h"
#include "negotiation/protocol/tensor_table.h"

namespace hvdlite::negotiation {

// Turns tensors that are ready on all ranks, and ranks that want to leave, into
// decisions (still without numbers). Pure: no I/O, threads or clock.
class DecisionMaker {
 public:
  // `membership` outlives this; the root is rank 0.
  DecisionMaker(const Membership& membership, int64_t fusion_threshold_bytes,
                int64_t min_batch_bytes);

  // Every rank that takes part has submitted the slot's operation. Returns what
  // is decided at once: a failure if they do not agree about it or it cannot be
  // done now, or a new process set. Else it stays here until a later decision.
  std::vector<wire::Decision> OnReady(TensorSlot& slot);

  // Somebody waits for a slot that was passed to OnReady.
  void MarkUrgent(TensorSlot& slot) { planner_.MarkUrgent(slot); }

  // The first rank leaves; decided once what is ready has been started.
  void OnDeparture(const wire::Departure& departure);
  // All ranks have left.
  void OnAllLeft() { all_left_ = true; }

  // What is decided now, in this order: batches of process sets with the root
  // only while its data plane is idle, and then one.
  std::vector<wire::Decision> Next(bool root_is_idle);

 private:
  // Whether it is worth an id; remembers names that are not, so far.
  bool IsUsedAgain(const TensorSlot& slot);
  void Register(const TensorSlot& slot, wire::Registration* registration);
  void DescribeBatch(const BatchPlanner::Batch& planned, wire::Batch* batch);
  void DecideRemovals(std::vector<wire::Decision>& decisions);

  const Membership& membership_;
  BatchPlanner planner_;
  ProcessSetId next_process_set_ = 1;
  std::vector<wire::RemovedProcessSet> removals_;  // not decided yet
  uint32_t next_id_ = 0;
  absl::flat_hash_set<std::string> used_once_;
  std::optional<wire::Departure> departure_;  // not decided yet
  bool departed_ = false;                     // decided
  bool all_left_ = false;
  bool shut_down_ = false;  // decided
};

}  // namespace hvdlite::negotiation
