// TensorTable: what one rank knows about the tensors being negotiated.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "negotiation/protocol/request.h"

namespace hvdlite::negotiation {

// Stands for a local operation; chosen by whoever submits.
using Token = uint64_t;

struct TensorSlot;

// From the decision that registers it to the one that forgets it, `id` stands
// for `request` on every rank. Afterwards it is understood until all ranks
// below have heard of that: they may have reported it before.
struct Registration {
  uint32_t id = 0;
  uint64_t version = 0;        // differs for every registration; 0: forgotten
  TensorSlot* slot = nullptr;  // of its name; null: forgotten
  int64_t request_bytes = 0;
  bool released = false;  // some rank below, or this one, needs it no longer
  Request request;
};

// One operation's name. A name is negotiated again and again (once per training
// step); an instance begins with the first rank that submits and ends with a
// decision. Instances never mix: the negotiation hears of the next one only
// after the decision about the last.
struct TensorSlot {
  // The instance being gathered. Sources are this rank (0) and its children in
  // the tree (1, 2, ...); each contributes once its whole subtree has
  // submitted.
  uint64_t arrived = 0;          // bit per source
  uint64_t arrived_by_id = 0;    // of `registered`, those in `step`
  ProcessSetId process_set = 0;  // of the instance
  bool present = false;          // some rank has a gradient
  bool reported = false;         // all arrived, and told the parent or planner
  bool urgent = false;           // somebody waits for it
  uint32_t step = 0;             // of those in arrived_by_id
  int last_rank = 0;             // who submitted last
  int64_t first_ns = 0;          // arrival of the first source
  int64_t last_ns = 0;           // and the last
  const Registration* registered = nullptr;  // of those in arrived_by_id
  std::vector<Variant> variants;  // what the others submitted

  // This rank's own part in it.
  std::optional<Token> token;
  int64_t submitted_ns = 0;

  std::string name;
  // Of the requests with ids that have been made under this name.
  absl::InlinedVector<Registration*, 1> registrations;

  bool has_arrived(int source) const { return (arrived >> source) & 1; }
  // This rank has submitted it, and waits for at least that long.
  bool has_waited(absl::Duration duration, int64_t now_ns) const {
    return token.has_value() &&
           absl::Nanoseconds(now_ns - submitted_ns) >= duration;
  }
  // The id that stands for the request, if one does.
  Registration* Find(const Request& request) const;

  void ClearInstance();
};

// Where the operations of one request are, once they are registered; spares
// their submitter the search by name and the comparison of requests.
struct SlotHint {
  uint32_t id = 0;
  uint64_t version = 0;  // 0: not known
};

// Slots by name, and registrations by id. Slots without registrations live for
// one instance.
class TensorTable {
 public:
  // Pointers stay valid until the slot's instance ends or its last registration
  // is forgotten, whichever is later.
  TensorSlot& FindOrInsert(const std::string& name);
  TensorSlot* Find(const std::string& name);
  // Null for an id that is free, or has never been given out.
  Registration* FindById(uint32_t id) {
    return id < by_id_.size() ? by_id_[id].get() : nullptr;
  }
  // What the hint was made for; null if it is forgotten.
  Registration* FindByHint(const SlotHint& hint) {
    Registration* const found = hint.version == 0 ? nullptr : FindById(hint.id);
    return found != nullptr && found->version == hint.version ? found : nullptr;
  }

  // Whether `id` may be registered: it is free, or the next.
  bool Accepts(uint32_t id) const {
    return id == by_id_.size() ||
           (id < by_id_.size() && by_id_[id] == nullptr);
  }
  // `id`, which is accepted, now stands for `request`.
  Registration& Register(uint32_t id, Request request);
  // It stands for nothing any more, but is understood. Nothing of its slot's
  // instance has arrived by it.
  void Forget(Registration& registration);
  // What was forgotten is not even understood any more: the ids are free.
  void Free(const std::vector<uint32_t>& ids);
  // That stand for requests of the process set; ascending.
  std::vector<uint32_t> IdsOf(ProcessSetId process_set) const;

  // Ends the slot's instance, and the slot itself if it has no registration.
  void EndInstance(TensorSlot& slot);

  // All slots, in no particular order; `visit` leaves the table as it is.
  void Visit(absl::FunctionRef<void(const TensorSlot&)> visit) const {
    for (const auto& [name, slot] : by_name_) visit(*slot);
  }
  // All slots, in the order of their names.
  std::vector<TensorSlot*> All();

 private:
  void EraseIfUnused(TensorSlot& slot);

  // The keys are the slots' own names.
  absl::flat_hash_map<absl::string_view, std::unique_ptr<TensorSlot>> by_name_;
  std::vector<std::unique_ptr<Registration>> by_id_;  // null: free
  uint64_t versions_ = 0;
};

}  // namespace hvdlite::negotiation
