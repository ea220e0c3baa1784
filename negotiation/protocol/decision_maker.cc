#include "negotiation/protocol/decision_maker.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/hash/hash.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "negotiation/protocol/rank_list.h"
#include "negotiation/protocol/request.h"
#include "negotiation/protocol/wire_format.h"

namespace hvdlite::negotiation {
namespace {

bool CanRunTogether(const Request& a, const Request& b) {
  return a.process_set == b.process_set && a.collective == b.collective &&
         a.op == b.op && a.average == b.average &&
         a.compression == b.compression &&
         a.prescale_factor == b.prescale_factor &&
         a.postscale_factor == b.postscale_factor && a.root_rank == b.root_rank;
}

// The maximum number of ids of one name. If it stands for more requests in
// turn, the others are announced, or take the id of a request that has not been
// used for a while.
constexpr size_t kMaxIdsPerName = 16;
constexpr uint64_t kMinIdleUses = 1024;

// The fields that CanRunTogether compares.
Request KeyOf(const Request& request) {
  Request key;
  key.process_set = request.process_set;
  key.collective = request.collective;
  key.op = request.op;
  key.average = request.average;
  key.compression = request.compression;
  key.prescale_factor = request.prescale_factor;
  key.postscale_factor = request.postscale_factor;
  key.root_rank = request.root_rank;
  return key;
}

// Returns why the operation cannot be done while these members have joined.
std::optional<std::string> ObstacleByJoin(const Request& request,
                                          const Membership& membership) {
  const AfterJoin rule = request.traits().after_join;
  if (rule == AfterJoin::kNeutral) return std::nullopt;
  const std::string operation =
      absl::AsciiStrToLower(std::string(NameOf(request.collective)));
  if (rule == AfterJoin::kNeedsRoot) {
    if (!membership.has_joined(request.root_rank)) return std::nullopt;
    return absl::StrCat(operation, " of '", request.name, "': its root, rank ",
                        request.root_rank, ", has joined and has no data; ",
                        operation, " from another rank, or before join()");
  }
  const std::vector<int> joined = membership.JoinedMembers(request.process_set);
  if (joined.empty()) return std::nullopt;
  return absl::StrCat(operation, " '", request.name, "' needs all ranks, but ",
                      FormatRanks(joined),
                      joined.size() == 1 ? " has" : " have",
                      " joined; call it before join() or after join() has "
                      "returned");
}

}  // namespace

BucketPlanner::BucketPlanner(int64_t fusion_threshold_bytes,
                             int64_t min_batch_bytes)
    : fusion_threshold_bytes_(fusion_threshold_bytes),
      min_batch_bytes_(min_batch_bytes) {}

void BucketPlanner::Add(TensorSlot& slot, const Request& request,
                        bool with_root) {
  if (!slot.present) {
    Absent& absent = absent_[slot.process_set];
    absent.with_root = with_root;
    absent.urgent = absent.urgent || slot.urgent;
    absent.slots.push_back(&slot);
    return;
  }
  auto group = std::find_if(
      groups_.begin(), groups_.end(),
      [&](const Group& g) { return CanRunTogether(g.key, request); });
  if (group == groups_.end()) {
    group = groups_.insert(groups_.end(), Group{KeyOf(request), with_root, {}});
  }
  // The size is unknown until all ranks have sent their rows, so the operation
  // starts.
  const int64_t bytes = request.rows_differ() ? min_batch_bytes_
                        : slot.registered != nullptr
                            ? slot.registered->request_bytes
                            : request.size_bytes();
  group->entries.push_back({&slot, bytes, next_order_++});
  group->bytes += bytes;
  if (slot.urgent) ++group->urgent;
}

void BucketPlanner::MarkUrgent(TensorSlot& slot) {
  if (slot.urgent) return;
  slot.urgent = true;
  if (!slot.present) {
    absent_[slot.process_set].urgent = true;
    return;
  }
  for (Group& group : groups_) {
    for (size_t i = group.first; i < group.entries.size(); ++i) {
      if (group.entries[i].slot != &slot) continue;
      ++group.urgent;
      return;
    }
  }
}

bool BucketPlanner::holds(ProcessSetId process_set) const {
  return absent_.contains(process_set) ||
         std::any_of(groups_.begin(), groups_.end(), [&](const Group& group) {
           return group.key.process_set == process_set;
         });
}

bool BucketPlanner::Starts(const Group& group, bool root_is_idle) const {
  if (group.with_root && !root_is_idle) return false;
  return Flushes(group.key.process_set) || group.urgent > 0 ||
         group.bytes >= min_batch_bytes_;
}

BucketPlanner::Group* BucketPlanner::ChooseGroup(bool root_is_idle) {
  // Among the groups that start, those that a thread waits for come first, then
  // the one with the oldest tensor.
  const auto rank = [](const Group& group) {
    return std::make_pair(group.urgent == 0, group.entries[group.first].order);
  };
  Group* chosen = nullptr;
  for (Group& group : groups_) {
    if (!Starts(group, root_is_idle)) continue;
    if (chosen == nullptr || rank(group) < rank(*chosen)) chosen = &group;
  }
  return chosen;
}

void BucketPlanner::TakeTensors(Group& group, Bucket& bucket) {
  int64_t bytes = 0;
  for (; group.first < group.entries.size(); ++group.first) {
    const Entry& entry = group.entries[group.first];
    if (!bucket.tensors.empty() &&
        bytes + entry.bytes > fusion_threshold_bytes_) {
      break;
    }
    bytes += entry.bytes;
    if (entry.slot->urgent) --group.urgent;
    bucket.tensors.push_back(entry.slot);
  }
  group.bytes -= bytes;
  // A group that is never empty must not grow for ever.
  if (group.first > group.entries.size() / 2) {
    group.entries.erase(
        group.entries.begin(),
        group.entries.begin() + static_cast<std::ptrdiff_t>(group.first));
    group.first = 0;
  }
}

void BucketPlanner::TakeAbsent(ProcessSetId process_set, Bucket& bucket) {
  const auto absent = absent_.find(process_set);
  if (absent == absent_.end()) return;
  bucket.absent = std::move(absent->second.slots);
  absent_.erase(absent);
}

std::optional<BucketPlanner::Bucket> BucketPlanner::Next(bool root_is_idle) {
  Bucket bucket;
  if (Group* group = ChooseGroup(root_is_idle); group != nullptr) {
    bucket.process_set = group->key.process_set;
    bucket.with_root = group->with_root;
    TakeTensors(*group, bucket);
    if (group->first == group->entries.size()) {
      groups_.erase(groups_.begin() + (group - groups_.data()));
    }
    TakeAbsent(bucket.process_set, bucket);
    return bucket;
  }
  for (const auto& [process_set, absent] : absent_) {
    if (!absent.urgent && !Flushes(process_set)) continue;
    if (absent.with_root && !root_is_idle) continue;
    bucket.process_set = process_set;
    bucket.with_root = absent.with_root;
    TakeAbsent(bucket.process_set, bucket);
    return bucket;
  }
  return std::nullopt;
}

DecisionMaker::DecisionMaker(const Membership& membership,
                             int64_t fusion_threshold_bytes,
                             int64_t min_batch_bytes, uint64_t max_idle_uses)
    : membership_(membership),
      planner_(fusion_threshold_bytes, min_batch_bytes),
      ids_(max_idle_uses) {}

std::vector<wire::Decision> DecisionMaker::OnReady(TensorSlot& slot) {
  if (departed_) return {};  // every rank abandons it
  const auto fail = [&](std::string message) {
    wire::Decision decision;
    decision.set_allocated_failure(new wire::Failure);
    decision.mutable_failure()->set_name(slot.name);
    decision.mutable_failure()->set_message(std::move(message));
    decision.mutable_failure()->set_next_step(NextStep(slot.variants));
    return std::vector<wire::Decision>{std::move(decision)};
  };
  if (!Agree(slot.variants)) return fail(DescribeMismatch(slot.variants));
  const Request& request =
      slot.variants.empty() ? slot.registered->request
                            : slot.variants.front().request;
  if (membership_.anyone_joined()) {
    std::optional<std::string> obstacle = ObstacleByJoin(request, membership_);
    if (obstacle.has_value()) return fail(*std::move(obstacle));
  }
  if (request.collective == Collective::kAddProcessSet) {
    wire::Decision decision;
    decision.set_allocated_added(new wire::AddedProcessSet);
    wire::AddedProcessSet* added = decision.mutable_added();
    added->set_name(slot.name);
    added->set_process_set(next_process_set_++);
    added->mutable_members()->Assign(request.members.begin(),
                                     request.members.end());
    return {std::move(decision)};
  }
  if (request.collective == Collective::kRemoveProcessSet) {
    const bool removed_before =
        absl::c_any_of(removals_, [&](const wire::RemovedProcessSet& removal) {
          return removal.process_set() == request.removed;
        });
    if (removed_before || !membership_.exists(request.removed)) {
      return fail(absl::StrCat("process set ", request.removed,
                               " has been removed before"));
    }
    wire::RemovedProcessSet& removal = removals_.emplace_back();
    removal.set_name(slot.name);
    removal.set_process_set(request.removed);
    planner_.Flush(request.removed);
    return {};
  }
  planner_.Add(slot, request,
               membership_.IsMember(slot.process_set, /*rank=*/0));
  return {};
}

void DecisionMaker::OnDeparture(const wire::Departure& departure) {
  departure_ = departure;
  planner_.Flush();
}

std::vector<wire::Decision> DecisionMaker::Next(bool root_is_idle) {
  std::vector<wire::Decision> decisions;
  while (const std::optional<BucketPlanner::Bucket> planned =
             planner_.Next(root_is_idle)) {
    auto bucket = std::make_unique<wire::Bucket>();
    DescribeBucket(*planned, bucket.get());
    decisions.emplace_back().set_allocated_bucket(bucket.release());
    if (planned->with_root) root_is_idle = false;
  }
  DecideRemovals(decisions);
  if (!planner_.empty() || !removals_.empty()) return decisions;
  // Nothing that was ready is left: now ranks may leave.
  if (departure_.has_value()) {
    departed_ = true;
    decisions.emplace_back().set_allocated_departure(
        new wire::Departure(*std::exchange(departure_, std::nullopt)));
  }
  if (departed_ && all_left_ && !std::exchange(shut_down_, true)) {
    decisions.emplace_back().set_shutdown(true);
  }
  return decisions;
}

void DecisionMaker::DecideRemovals(std::vector<wire::Decision>& decisions) {
  std::vector<wire::RemovedProcessSet> later;
  for (wire::RemovedProcessSet& removal : removals_) {
    if (planner_.holds(removal.process_set())) {
      later.push_back(std::move(removal));
    } else {
      planner_.Forget(removal.process_set());
      decisions.emplace_back().set_allocated_removed(
          new wire::RemovedProcessSet(std::move(removal)));
    }
  }
  removals_ = std::move(later);
}

bool DecisionMaker::GetsId(const TensorSlot& slot, const Request& request) {
  if (!ids_.IsUsedAgain(absl::HashOf(request))) return false;
  if (slot.registrations.size() < kMaxIdsPerName) return true;
  const Registration* const oldest = *absl::c_max_element(
      slot.registrations, [&](const Registration* a, const Registration* b) {
        return ids_.IdleUses(a->id) < ids_.IdleUses(b->id);
      });
  if (ids_.IdleUses(oldest->id) < kMinIdleUses) return false;
  ids_.Release(oldest->id);
  return true;
}

void DecisionMaker::Describe(const TensorSlot& slot, Described& described,
                             Registrations* registrations) {
  // Some ranks may have announced it although it has an id that all ranks know.
  const Registration* const known =
      slot.variants.empty() ? slot.registered
                            : slot.Find(slot.variants.front().request);
  if (known != nullptr) {
    ids_.OnUse(known->id);
    described.by_id.push_back(&slot);
    described.ids.push_back(known->id);
  } else if (const Request& request = slot.variants.front().request;
             GetsId(slot, request)) {
    described.registered.push_back(&slot);
    wire::Registration* const added = registrations->Add();
    added->set_id(ids_.Take());
    ToWire(request, added->mutable_request());
  } else {
    described.others.push_back(&slot);
  }
}

void DecisionMaker::DescribeBucket(const BucketPlanner::Bucket& planned,
                                   wire::Bucket* bucket) {
  bucket->set_process_set(planned.process_set);
  bucket->set_joined(
      static_cast<uint32_t>(membership_.size(planned.process_set) -
                            membership_.CountRemaining(planned.process_set)));
  Described tensors, absent;
  for (const TensorSlot* slot : planned.tensors) {
    Describe(*slot, tensors, bucket->mutable_registered());
  }
  // Ranks that have joined take part, too, and learn of it only by the request.
  const bool describes = membership_.anyone_joined();
  for (const TensorSlot* slot : tensors.others) {
    if (describes) {
      ToWire(slot->variants.front().request, bucket->add_requests());
    } else {
      bucket->add_names(slot->name);
    }
  }
  absl::InlinedVector<uint64_t, 8> last_ranks, lateness_us;
  for (const auto* slots :
       {&tensors.by_id, &tensors.registered, &tensors.others}) {
    for (const TensorSlot* slot : *slots) {
      last_ranks.push_back(static_cast<uint64_t>(slot->last_rank));
      lateness_us.push_back(
          static_cast<uint64_t>((slot->last_ns - slot->first_ns) / 1000));
    }
  }
  for (const TensorSlot* slot : planned.absent) {
    Describe(*slot, absent, bucket->mutable_absent_registered());
  }
  for (const TensorSlot* slot : absent.others) {
    bucket->add_absent_names(slot->name);
  }
  AppendIds(tensors.ids, bucket->mutable_ids());
  AppendIds(absent.ids, bucket->mutable_absent_ids());
  AppendValues(last_ranks, bucket->mutable_last_ranks());
  AppendValues(lateness_us, bucket->mutable_lateness_us());
}

}  // namespace hvdlite::negotiation
