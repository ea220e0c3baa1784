// TensorTable: what one rank knows about the tensors being negotiated.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "negotiation/protocol/request.h"

namespace hvdlite::negotiation {

// Stands for a local operation; chosen by whoever submits.
using Token = uint64_t;

// One operation's name. A name is negotiated again and again (once per training
// step); an instance begins with the first rank that submits and ends with a
// decision. Instances never mix: the negotiation hears of the next one only
// after the decision about the last.
struct TensorSlot {
  // The instance being gathered. Sources are this rank (0) and its children in
  // the tree (1, 2, ...); each contributes once its whole subtree has
  // submitted.
  uint64_t arrived = 0;          // bit per source
  uint64_t arrived_by_id = 0;    // those that agree with `request`, in one step
  ProcessSetId process_set = 0;  // of the instance, or the registered
  bool present = false;          // some rank has a gradient
  bool reported = false;         // all arrived, and told the parent or planner
  bool urgent = false;           // somebody waits for it
  uint32_t step = 0;             // of those who agree with `request`
  int last_rank = 0;             // who submitted last
  int64_t first_ns = 0;          // arrival of the first source
  int64_t last_ns = 0;           // and the last
  std::vector<Variant> variants;  // what the others submitted

  // This rank's own part in it.
  std::optional<Token> token;
  int64_t submitted_ns = 0;

  // Once registered, `id` stands for `request` on every rank.
  std::optional<uint32_t> id;
  uint64_t version = 0;       // differs for every registration
  int64_t request_bytes = 0;  // of the registered request
  std::string name;
  Request request;

  bool has_arrived(int source) const { return (arrived >> source) & 1; }
  // This rank has submitted it, and waits for at least that long.
  bool has_waited(absl::Duration duration, int64_t now_ns) const {
    return token.has_value() &&
           absl::Nanoseconds(now_ns - submitted_ns) >= duration;
  }

  void ClearInstance();
};

// Where the operations of one name are, once they are registered; spares their
// submitter the search by name and the comparison of requests.
struct SlotHint {
  uint32_t id = 0;
  uint64_t version = 0;  // 0: not known
};

// Slots by name and by id. Slots without id live for one instance.
class TensorTable {
 public:
  // Pointers stay valid until Erase.
  TensorSlot& FindOrInsert(const std::string& name);
  TensorSlot* Find(const std::string& name);
  TensorSlot* FindById(uint32_t id) {
    return id < by_id_.size() ? by_id_[id] : nullptr;
  }
  // The slot that is registered for the request which the hint was made for;
  // null if it is not any more.
  TensorSlot* FindByHint(const SlotHint& hint) {
    TensorSlot* const slot = hint.version == 0 ? nullptr : FindById(hint.id);
    return slot != nullptr && slot->version == hint.version ? slot : nullptr;
  }
  // The id has been given out.
  bool Knows(uint32_t id) const { return id < by_id_.size(); }
  // The id was given out, and stands for nothing any more, as after the removal
  // of its process set.
  bool IsRetired(uint32_t id) const;

  // Whether `id` may be registered: ids are given in order, and again.
  bool Accepts(uint32_t id) const { return id <= by_id_.size(); }
  // `id` now stands for `request`; an earlier id of that name for nothing.
  TensorSlot& Register(uint32_t id, Request request);

  // Ends the slot's instance, and the slot itself if it has no id.
  void EndInstance(TensorSlot& slot);

  // Forgets everything about a process set.
  void EraseProcessSet(ProcessSetId process_set);

  // All slots, in no particular order; `visit` leaves the table as it is.
  void Visit(absl::FunctionRef<void(const TensorSlot&)> visit) const {
    for (const auto& [name, slot] : by_name_) visit(*slot);
  }
  // All slots, in the order of their names.
  std::vector<TensorSlot*> All();

 private:
  absl::flat_hash_map<std::string, std::unique_ptr<TensorSlot>> by_name_;
  std::vector<TensorSlot*> by_id_;
  uint64_t versions_ = 0;
};

}  // namespace hvdlite::negotiation
