// DecisionMaker does what only the root does. BucketPlanner chooses what is
// reduced next.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "negotiation/protocol/id_pool.h"
#include "negotiation/protocol/membership.h"
#include "negotiation/protocol/messages.pb.h"
#include "negotiation/protocol/tensor_table.h"

namespace hvdlite::negotiation {

// Operations that are ready on all ranks wait here, in groups that can run
// together: with the same process set, collective, op, scale and root. A bucket
// starts when a group holds an operation that a thread waits for, or
// `min_batch_bytes`. It takes operations from that group, first come first
// served, up to `fusion_threshold_bytes`. There is no I/O, thread or clock.
class BucketPlanner {
 public:
  BucketPlanner(int64_t fusion_threshold_bytes, int64_t min_batch_bytes);

  // All ranks agree on `request`. `slot` stays with the planner until Next
  // returns it. If `slot.present` is false, it needs no reduction. Reads
  // slot.urgent. `with_root`: the root is in the process set.
  void Add(TensorSlot& slot, const Request& request, bool with_root);

  // A thread waits for a slot that was added.
  void MarkUrgent(TensorSlot& slot);

  // From now on everything starts immediately, for all process sets or for one.
  void Flush() { flushing_ = true; }
  void Flush(ProcessSetId process_set) { flushing_sets_.insert(process_set); }
  // The process set has ended, and no operation of it waits.
  void Forget(ProcessSetId process_set) { flushing_sets_.erase(process_set); }

  struct Bucket {
    ProcessSetId process_set = 0;
    bool with_root = true;
    std::vector<TensorSlot*> tensors;  // reduced together
    std::vector<TensorSlot*> absent;   // end without a reduction
  };
  // The bucket to start now, or nullopt. While the root's data plane is busy,
  // operations of its own process sets gather.
  std::optional<Bucket> Next(bool root_is_idle);

  // Whether nothing waits, in all process sets or in one.
  bool empty() const { return groups_.empty() && absent_.empty(); }
  bool holds(ProcessSetId process_set) const;

 private:
  struct Entry {
    TensorSlot* slot;
    int64_t bytes;
    uint64_t order;  // of arrival
  };
  struct Group {
    // What all of them share, apart from names and tensors.
    Request key;
    bool with_root;
    std::vector<Entry> entries;
    size_t first = 0;  // index of the first remaining entry
    int64_t bytes = 0;
    int urgent = 0;
  };
  // Absent operations of one process set. They cost nothing, and end along with
  // any bucket.
  struct Absent {
    bool with_root = true;
    bool urgent = false;
    std::vector<TensorSlot*> slots;
  };

  bool Flushes(ProcessSetId process_set) const {
    return flushing_ || flushing_sets_.contains(process_set);
  }
  bool Starts(const Group& group, bool root_is_idle) const;
  // The group to start, or null.
  Group* ChooseGroup(bool root_is_idle);
  void TakeTensors(Group& group, Bucket& bucket);
  void TakeAbsent(ProcessSetId process_set, Bucket& bucket);

  const int64_t fusion_threshold_bytes_;
  const int64_t min_batch_bytes_;
  bool flushing_ = false;
  absl::flat_hash_set<ProcessSetId> flushing_sets_;
  uint64_t next_order_ = 0;
  std::vector<Group> groups_;  // none of them empty
  absl::btree_map<ProcessSetId, Absent> absent_;
};

// Makes decisions (still without numbers) about tensors that are ready on all
// ranks, and about ranks that leave. There is no I/O, thread or clock.
class DecisionMaker {
 public:
  // `membership` must outlive this; the root is rank 0. `max_idle_uses`: see
  // IdPool.
  DecisionMaker(const Membership& membership, int64_t fusion_threshold_bytes,
                int64_t min_batch_bytes, uint64_t max_idle_uses);

  // Every rank that takes part has submitted the slot's operation. Returns what
  // can be decided now: a failure if the ranks disagree or it cannot be done
  // now, or a new process set. Otherwise the slot stays here until a later
  // decision.
  std::vector<wire::Decision> OnReady(TensorSlot& slot);

  // A thread waits for a slot that was passed to OnReady.
  void MarkUrgent(TensorSlot& slot) { planner_.MarkUrgent(slot); }

  // The first rank leaves. This is decided once all that is ready has been
  // started.
  void OnDeparture(const wire::Departure& departure);
  // All ranks have left.
  void OnAllLeft() { all_left_ = true; }

  // What is decided now, in this order. At most one bucket of the process sets
  // with the root, and only while its data plane is idle.
  std::vector<wire::Decision> Next(bool root_is_idle);

  // The ids that the next decision has to forget; none once ranks have left.
  std::vector<uint32_t> TakeForgotten() {
    return departed_ ? std::vector<uint32_t>() : ids_.TakeForgotten();
  }
  // For ids that are about to be forgotten, are forgotten in another way, or
  // have been forgotten by all ranks.
  IdPool& ids() { return ids_; }

 private:
  // Adds the operation to one of these lists: by id, with a new id, or to
  // `others`, which are not worth an id.
  struct Described {
    absl::InlinedVector<const TensorSlot*, 8> by_id, registered, others;
    absl::InlinedVector<uint32_t, 8> ids;
  };
  using Registrations =
      google::protobuf::RepeatedPtrField<wire::Registration>;
  void Describe(const TensorSlot& slot, Described& described,
                Registrations* registrations);
  // Whether the slot's request, which has no id, is worth one.
  bool GetsId(const TensorSlot& slot, const Request& request);
  void DescribeBucket(const BucketPlanner::Bucket& planned,
                      wire::Bucket* bucket);
  void DecideRemovals(std::vector<wire::Decision>& decisions);

  const Membership& membership_;
  BucketPlanner planner_;
  ProcessSetId next_process_set_ = 1;
  std::vector<wire::RemovedProcessSet> removals_;  // not decided yet
  IdPool ids_;
  std::optional<wire::Departure> departure_;  // not decided yet
  bool departed_ = false;                     // decided
  bool all_left_ = false;
  bool shut_down_ = false;  // decided
};

}  // namespace hvdlite::negotiation
