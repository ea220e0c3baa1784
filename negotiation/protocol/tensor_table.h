// TensorTable is what one rank knows about the tensors being negotiated.
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

// Stands for a local operation; the submitter chooses it.
using Token = uint64_t;

struct TensorSlot;

// From the decision that registers it to the one that forgets it, `id` stands
// for `request` on every rank. Afterwards it is still understood until all
// ranks below know that: they may have reported it before.
struct Registration {
  uint32_t id = 0;
  uint64_t version = 0;        // differs for every registration; 0: forgotten
  TensorSlot* slot = nullptr;  // the name's slot; null: forgotten
  int64_t request_bytes = 0;
  bool released = false;  // this rank or one below does not need it
  Request request;
};

// The name of an operation. A name is negotiated repeatedly, once per training
// step. An instance begins with the first rank that submits, and ends with a
// decision. Instances never mix: the negotiation learns of the next one only
// after the decision about the last one.
struct TensorSlot {
  // The instance that is being collected. Sources are this rank (0) and its
  // children in the tree (1, 2, ...). Each source arrives once its whole
  // subtree has submitted.
  uint64_t arrived = 0;          // bit per source
  uint64_t arrived_by_id = 0;    // by `registered`, in `step`
  ProcessSetId process_set = 0;  // of the instance
  bool present = false;          // some rank has a gradient
  bool reported = false;         // all arrived; parent or planner knows
  bool urgent = false;           // a thread waits for it
  uint32_t step = 0;             // of arrived_by_id
  int last_rank = 0;             // the rank that submitted last
  int64_t first_ns = 0;          // arrival of the first source
  int64_t last_ns = 0;           // and the last
  const Registration* registered = nullptr;  // of arrived_by_id
  std::vector<Variant> variants;  // what the others submitted

  // This rank's own part in it.
  std::optional<Token> token;
  int64_t submitted_ns = 0;

  std::string name;
  // Registrations of the requests that have been made under this name.
  absl::InlinedVector<Registration*, 1> registrations;

  bool has_arrived(int source) const { return (arrived >> source) & 1; }
  // Whether this rank has submitted it, and has waited for at least `duration`.
  bool has_waited(absl::Duration duration, int64_t now_ns) const {
    return token.has_value() &&
           absl::Nanoseconds(now_ns - submitted_ns) >= duration;
  }
  // The id that stands for the request, if there is one.
  Registration* Find(const Request& request) const;

  void ClearInstance();
};

// Where the registered operations of one request are. It saves their submitter
// the search by name and the comparison of requests.
struct SlotHint {
  uint32_t id = 0;
  uint64_t version = 0;  // 0: not known
};

// Slots by name, and registrations by id. Slots without registrations exist for
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
  // The registration that the hint was made for; null if it is forgotten.
  Registration* FindByHint(const SlotHint& hint) {
    Registration* const found = hint.version == 0 ? nullptr : FindById(hint.id);
    return found != nullptr && found->version == hint.version ? found : nullptr;
  }

  // Whether `id` may be registered: it is free, or the next.
  bool Accepts(uint32_t id) const {
    return id == by_id_.size() ||
           (id < by_id_.size() && by_id_[id] == nullptr);
  }
  // From now on `id`, which is accepted, stands for `request`.
  Registration& Register(uint32_t id, Request request);
  // The id does not stand for the request any more, but is still understood.
  // Nothing of its slot's current instance may have arrived by it.
  void Forget(Registration& registration);
  // Forgotten ids are no longer understood: they are free.
  void Free(const std::vector<uint32_t>& ids);
  // The ids that stand for requests of the process set; ascending.
  std::vector<uint32_t> IdsOf(ProcessSetId process_set) const;

  // Ends the slot's instance, and the slot itself if it has no registration.
  void EndInstance(TensorSlot& slot);

  // Visits all slots, in no particular order; `visit` must not change the
  // table.
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
