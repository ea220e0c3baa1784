// ReportDraft: what a rank is going to tell its parent.
#pragma once

#include <cstdint>
#include <vector>

#include "negotiation/protocol/messages.pb.h"
#include "negotiation/protocol/tensor_table.h"

namespace hvdlite::negotiation {

// How long before `now_ns` something was submitted, as messages carry it.
uint32_t AgeAt(int64_t now_ns, int64_t submitted_ns);
int64_t TimeOfAge(int64_t now_ns, uint32_t age);

// Tensors that are ready and have an id are held back until they are worth a
// report or something else is to be told.
class ReportDraft {
 public:
  // `worth_bytes`: of tensors that are worth a report.
  explicit ReportDraft(int64_t worth_bytes) : worth_bytes_(worth_bytes) {}

  // A tensor for which all ranks below have submitted.
  void AddReady(const TensorSlot& slot, int64_t now_ns);
  // Somebody waits for a tensor that has been added before.
  void AddUrgent(const TensorSlot& slot);
  // Everything else; goes out at once.
  wire::Report& rest() { return rest_; }

  // Something is not to be held back any longer.
  bool IsDue() const;
  int64_t held_bytes() const { return held_bytes_; }

  // All of it, with what was held back. Empties the draft.
  wire::Report Take(int64_t now_ns);

 private:
  // Ids, with the rank that submitted each last, when, and in which step.
  struct ReadyIds {
    std::vector<uint32_t> ids;
    std::vector<uint32_t> last_ranks;
    std::vector<int64_t> last_ns;
    std::vector<uint32_t> steps;
    bool any_step = false;
  };
  static void MoveTo(wire::Ready* message, int64_t now_ns, ReadyIds& ready);

  const int64_t worth_bytes_;
  ReadyIds ready_;
  ReadyIds absent_;  // for which no rank has a gradient
  int64_t held_bytes_ = 0;
  std::vector<uint32_t> urgent_ids_;
  wire::Report rest_;
};

}  // namespace hvdlite::negotiation
