// Tensors that reach the Negotiator by ids, and ids that are forgotten.
//
// The root decides to forget an id, in the order of all decisions. So every
// rank forgets it at the same point, and no later decision uses it. Reports
// cross decisions: a rank may have reported by the id, or collected a part of
// an instance by it, before it knew. So the id is still understood, and what
// has arrived or arrives by it is treated like a full announcement. Once all
// ranks below have reported that they do not use the id any more, a rank
// reports the same (Report::forgotten) and frees the id. On each link this
// comes after the last use. The root may give the id to another request once it
// has heard from all ranks.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "negotiation/protocol/negotiator.h"
#include "negotiation/protocol/wire_format.h"

namespace hvdlite::negotiation {

bool Negotiator::VisitKnownIds(const NumberField& ids,
                               absl::FunctionRef<bool(Registration&)> visit) {
  return VisitIds(ids, [&](uint32_t id) {
    Registration* const known = table_.FindById(id);
    return known != nullptr && visit(*known);
  });
}

void Negotiator::AddById(TensorSlot& slot, const Registration& registration,
                         int source, uint32_t step) {
  const bool forgotten = registration.slot == nullptr;
  if (slot.arrived_by_id == 0 && !forgotten) {
    slot.registered = &registration;
    slot.step = step;
  }
  if (slot.registered == &registration && slot.step == step) {
    slot.arrived_by_id |= uint64_t{1} << source;
  } else {
    AddVariant(slot, registration.request, step,
               RanksOf(source, slot.process_set));
  }
}

void Negotiator::DescribeById(TensorSlot& slot) {
  const uint64_t by_id = std::exchange(slot.arrived_by_id, 0) &
                         membership_.SourcesOf(slot.process_set);
  const Registration* const registered =
      std::exchange(slot.registered, nullptr);
  for (int source = 0; by_id >> source != 0; ++source) {
    if ((by_id >> source) & 1) {
      AddVariant(slot, registered->request, slot.step,
                 RanksOf(source, slot.process_set));
    }
  }
}

void Negotiator::Release(const std::string& name) {
  TensorSlot* const slot = table_.Find(name);
  if (slot == nullptr) return;
  for (Registration* registration : slot->registrations) {
    Release(*registration);
  }
}

// Each link carries a released id once, whatever the number of ranks below.
void Negotiator::Release(Registration& registration) {
  if (registration.slot == nullptr) return;  // forgotten meanwhile
  if (std::exchange(registration.released, true)) return;
  if (is_root()) {
    Touch();
    decision_maker_.ids().Release(registration.id);
  } else {
    report_.AddReleased(registration.id);
  }
}

absl::Status Negotiator::Forget(const std::vector<uint32_t>& ids) {
  if (ids.empty()) return absl::OkStatus();
  liveness_.OnForget();
  for (const uint32_t id : ids) {
    Registration* const registration = table_.FindById(id);
    if (registration == nullptr || registration->slot == nullptr) {
      return ProtocolError(
          absl::StrCat("tensor id ", id, " to forget is unknown"));
    }
    TensorSlot& slot = *registration->slot;
    if (slot.registered == registration) DescribeById(slot);
    table_.Forget(*registration);
  }
  if (is_root()) decision_maker_.ids().Retire(ids);
  forgotten_.push_back({last_decision_, ids});
  FreeForgotten();
  return absl::OkStatus();
}

absl::Status Negotiator::ApplyForgotten(const wire::Forgotten& forgotten) {
  std::vector<uint32_t> ids;
  const bool known =
      VisitKnownIds(forgotten.ids(), [&](const Registration& registration) {
        ids.push_back(registration.id);
        return true;
      });
  if (!known) return ProtocolError("unknown tensor ids to forget");
  return Forget(ids);
}

absl::Status Negotiator::OnForgotten(int source, uint64_t number) {
  uint64_t& heard = forgotten_below_[source - kFirstChild];
  if (number <= heard || number > last_decision_) {
    return ProtocolError(absl::StrCat(
        "tensor ids forgotten by decision ", number, " after decision ", heard,
        "; the last decision is ", last_decision_));
  }
  heard = number;
  FreeForgotten();
  return absl::OkStatus();
}

void Negotiator::FreeForgotten() {
  const uint64_t heard =
      forgotten_below_.empty() ? last_decision_
                               : *std::min_element(forgotten_below_.begin(),
                                                   forgotten_below_.end());
  uint64_t freed = 0;
  while (!forgotten_.empty() && forgotten_.front().number <= heard) {
    freed = forgotten_.front().number;
    table_.Free(forgotten_.front().ids);
    if (is_root()) decision_maker_.ids().Return(forgotten_.front().ids);
    forgotten_.pop_front();
  }
  if (freed > 0 && !is_root()) report_.rest().set_forgotten(freed);
}

}  // namespace hvdlite::negotiation
