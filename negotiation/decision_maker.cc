#include "negotiation/decision_maker.h"

#include <optional>
#include <utility>

#include "negotiation/mismatch.h"
#include "negotiation/request_wire.h"

namespace hvdlite::negotiation {
namespace {

// Names that were used once and are remembered, at most; when there are more,
// all are forgotten and get their id one use later.
constexpr size_t kMaxUsedOnce = 65536;

}  // namespace

DecisionMaker::DecisionMaker(int world_size, int64_t fusion_threshold_bytes,
                             int64_t min_batch_bytes)
    : world_size_(world_size),
      planner_(fusion_threshold_bytes, min_batch_bytes) {}

std::vector<wire::Decision> DecisionMaker::OnReady(TensorSlot& slot) {
  if (departed_ > 0) return {};  // every rank has given it up, or is about to
  if (!Agree(slot.variants)) {
    wire::Decision decision;
    decision.mutable_failure()->set_name(slot.name);
    decision.mutable_failure()->set_message(DescribeMismatch(slot.variants));
    return {std::move(decision)};
  }
  planner_.Add(slot, slot.variants.empty() ? slot.request
                                           : slot.variants.front().request);
  return {};
}

void DecisionMaker::OnDeparture(const wire::Departure& departure) {
  departures_.push_back(departure);
  planner_.Flush();
}

std::vector<wire::Decision> DecisionMaker::Next() {
  std::vector<wire::Decision> decisions;
  const std::optional<BatchPlanner::Batch> planned = planner_.Next();
  if (planned.has_value()) {
    DescribeBatch(*planned, decisions.emplace_back().mutable_batch());
    return decisions;
  }
  // Nothing that was ready is left: now those who want to may go.
  while (!departures_.empty()) {
    *decisions.emplace_back().mutable_departure() =
        std::move(departures_.front());
    departures_.pop_front();
    if (++departed_ == world_size_) decisions.emplace_back().set_shutdown(true);
  }
  return decisions;
}

bool DecisionMaker::IsUsedAgain(const TensorSlot& slot) {
  if (used_once_.erase(slot.name) > 0 || slot.id.has_value()) return true;
  if (used_once_.size() >= kMaxUsedOnce) used_once_.clear();
  used_once_.insert(slot.name);
  return false;
}

void DecisionMaker::Register(const TensorSlot& slot,
                             wire::Registration* registration) {
  // Nobody uses a former id any more: every rank has announced the request.
  registration->set_id(slot.id.has_value() ? *slot.id : next_id_++);
  ToWire(slot.variants.front().request, registration->mutable_request());
}

void DecisionMaker::DescribeBatch(const BatchPlanner::Batch& planned,
                                  wire::Batch* batch) {
  std::vector<const TensorSlot*> by_id, registered, by_name;
  for (const TensorSlot* slot : planned.tensors) {
    if (slot->variants.empty()) {
      by_id.push_back(slot);
      batch->add_ids(*slot->id);
    } else if (IsUsedAgain(*slot)) {
      registered.push_back(slot);
      Register(*slot, batch->add_registered());
    } else {
      by_name.push_back(slot);
      batch->add_names(slot->name);
    }
  }
  for (const auto* slots : {&by_id, &registered, &by_name}) {
    for (const TensorSlot* slot : *slots) {
      batch->add_last_ranks(slot->last_rank);
      batch->add_lateness_us((slot->last_ns - slot->first_ns) / 1000);
    }
  }
  for (const TensorSlot* slot : planned.absent) {
    if (slot->variants.empty()) {
      batch->add_absent_ids(*slot->id);
    } else if (IsUsedAgain(*slot)) {
      Register(*slot, batch->add_absent_registered());
    } else {
      batch->add_absent_names(slot->name);
    }
  }
}

}  // namespace hvdlite::negotiation
