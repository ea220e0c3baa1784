#include "negotiation/protocol/report_draft.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "negotiation/protocol/number_runs.h"
#include "negotiation/protocol/request_wire.h"

namespace hvdlite::negotiation {
namespace {

constexpr int64_t kAgeUnitNanos = 100'000;  // as messages.proto says

}  // namespace

uint32_t AgeAt(int64_t now_ns, int64_t submitted_ns) {
  return static_cast<uint32_t>(
      std::clamp<int64_t>((now_ns - submitted_ns) / kAgeUnitNanos, 0,
                          std::numeric_limits<uint32_t>::max()));
}

int64_t TimeOfAge(int64_t now_ns, uint32_t age) {
  return now_ns - int64_t{age} * kAgeUnitNanos;
}

void ReportDraft::AddReady(const TensorSlot& slot, int64_t now_ns) {
  if (slot.variants.empty()) {
    ReadyIds& ready = slot.present ? ready_ : absent_;
    ready.ids.push_back(*slot.id);
    ready.last_ranks.push_back(static_cast<uint32_t>(slot.last_rank));
    ready.last_ns.push_back(slot.last_ns);
    ready.steps.push_back(slot.step);
    ready.any_step = ready.any_step || slot.step != 0;
    // Nobody knows how many rows will arrive: let it start.
    held_bytes_ +=
        slot.request.rows_differ() ? worth_bytes_ : slot.request_bytes;
  }
  for (const Variant& variant : slot.variants) {
    wire::Announcement* announced = rest_.add_announced();
    ToWire(variant.request, announced->mutable_request());
    // Where all agree the parent knows which ranks they are: what is sent does
    // not grow with the subtree.
    if (slot.variants.size() > 1) {
      ToWire(variant.ranks, announced->mutable_ranks());
    }
    announced->set_absent(!slot.present);
    announced->set_last_rank(slot.last_rank);
    announced->set_age(AgeAt(now_ns, slot.last_ns));
    announced->set_step(variant.step);
  }
  if (slot.urgent) AddUrgent(slot);
}

void ReportDraft::AddUrgent(const TensorSlot& slot) {
  if (slot.variants.empty()) {
    urgent_ids_.push_back(*slot.id);
  } else {
    rest_.add_urgent_names(slot.name);
  }
}

bool ReportDraft::IsDue() const {
  return held_bytes_ >= worth_bytes_ || !urgent_ids_.empty() ||
         rest_.ByteSizeLong() > 0;
}

void ReportDraft::MoveTo(wire::Ready* message, int64_t now_ns,
                         ReadyIds& ready) {
  std::vector<uint32_t> ages;
  ages.reserve(ready.ids.size());
  for (const int64_t last_ns : ready.last_ns) {
    ages.push_back(AgeAt(now_ns, last_ns));
  }
  AppendIds(ready.ids, message->mutable_ids());
  AppendValues(ready.last_ranks, message->mutable_last_ranks());
  AppendValues(ages, message->mutable_ages());
  if (std::exchange(ready.any_step, false)) {
    AppendValues(ready.steps, message->mutable_steps());
  }
  ready.ids.clear();
  ready.last_ranks.clear();
  ready.last_ns.clear();
  ready.steps.clear();
}

wire::Report ReportDraft::Take(int64_t now_ns) {
  if (!ready_.ids.empty()) MoveTo(rest_.mutable_ready(), now_ns, ready_);
  if (!absent_.ids.empty()) MoveTo(rest_.mutable_absent(), now_ns, absent_);
  held_bytes_ = 0;
  AppendIds(urgent_ids_, rest_.mutable_urgent_ids());
  urgent_ids_.clear();
  return std::exchange(rest_, {});
}

}  // namespace hvdlite::negotiation
