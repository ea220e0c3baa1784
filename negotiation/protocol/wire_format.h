// The encoding in messages of requests, sets of ranks, looks at processes,
// lists of numbers, and reports.
#pragma once

#include <google/protobuf/repeated_field.h>

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "negotiation/protocol/messages.pb.h"
#include "negotiation/protocol/process_look.h"
#include "negotiation/protocol/rank_list.h"
#include "negotiation/protocol/request.h"
#include "negotiation/protocol/tensor_table.h"

namespace hvdlite::negotiation {

// Set members of a oneof with set_allocated_...(new ...), not with mutable_...:
// if the latter has no memory, the message holds a null pointer that its
// destructor follows.

// The error for a message that violates the protocol of negotiation.
inline absl::Status ProtocolError(absl::string_view what) {
  return absl::InternalError(
      absl::StrCat("negotiation: ", what,
                   "; all ranks must run the same version of hvdlite"));
}

// ---- Requests, sets of ranks, looks at processes.

void ToWire(const Request& request, wire::Request* message);

// Errors: InvalidArgument for values that this version does not know.
absl::StatusOr<Request> FromWire(const wire::Request& message);

void ToWire(const RankRuns& ranks, wire::Ranks* message);
// Leaves out numbers that are not ranks of a world of this size.
RankRuns FromWire(const wire::Ranks& message, int world_size);

void ToWire(const ProcessLook& look, wire::ProcessLook* message);
ProcessLook FromWire(const wire::ProcessLook& message);

// ---- Lists of numbers. They are short if values repeat.

using NumberField = google::protobuf::RepeatedField<uint64_t>;

// Appends ids in their order. A run of consecutive ids takes two small numbers,
// whatever its length. So a whole training step takes two if it announces its
// tensors in the order of the first step. Any other id takes one.
void AppendIds(absl::Span<const uint32_t> ids, NumberField* field);

// Calls `visit` for each id; stops when it returns false. Returns whether it
// reached the end, and the field is well-formed.
bool VisitIds(const NumberField& field,
              absl::FunctionRef<bool(uint32_t id)> visit);

// Appends values, each with how often it repeats: neighbours often are the
// same.
void AppendValues(absl::Span<const uint64_t> values, NumberField* field);

// Reads what AppendValues wrote.
class ValueReader {
 public:
  explicit ValueReader(const NumberField& field) : field_(field) {}

  // Returns false if there are no more.
  bool Next(uint64_t* value);
  bool done() const { return left_ == 0 && next_ >= field_.size(); }

 private:
  const NumberField& field_;
  int next_ = 0;
  uint64_t left_ = 0;  // of the current value
  uint64_t value_ = 0;
};

// ---- Reports: what a rank sends to its parent.

// The time for an age that a message carries.
int64_t TimeOfAge(int64_t now_ns, uint64_t age);

// A tensor for which all ranks below have submitted, identified by its id.
struct ReadyById {
  uint32_t id = 0;
  int last_rank = 0;  // the rank that submitted last
  int64_t last_ns = 0;
  uint32_t step = 0;
};
// Reads what ReportDraft wrote. Calls `visit` for each; stops when it returns
// false. Returns whether it reached the end, and the message is well-formed.
bool VisitReady(const wire::Ready& message, int64_t now_ns,
                absl::FunctionRef<bool(const ReadyById&)> visit);

// Holds back tensors that are ready and have an id until they are worth a
// report, or until there is something else to send.
class ReportDraft {
 public:
  // `worth_bytes`: the bytes of tensors that are worth a report.
  explicit ReportDraft(int64_t worth_bytes) : worth_bytes_(worth_bytes) {}

  // A tensor for which all ranks below have submitted.
  void AddReady(const TensorSlot& slot, int64_t now_ns);
  // A thread waits for a tensor that has been added before.
  void AddUrgent(const TensorSlot& slot);
  // An id that some rank below does not need any more; sent with the next
  // report.
  void AddReleased(uint32_t id) { released_ids_.push_back(id); }
  // Everything else; sent without delay.
  wire::Report& rest() { return rest_; }

  // Whether the draft has to be sent now.
  bool IsDue() const;
  int64_t coalesced_bytes() const { return coalesced_bytes_; }

  // Returns the whole report, including what was held back. Empties the draft.
  wire::Report Take(int64_t now_ns);

 private:
  // Ids with, for each, the rank that submitted last, when, and in which step.
  struct ReadyIds {
    std::vector<uint32_t> ids;
    std::vector<uint64_t> last_ranks;
    std::vector<int64_t> last_ns;
    std::vector<uint64_t> steps;
    bool any_step = false;
  };
  static void MoveTo(wire::Ready* message, int64_t now_ns, ReadyIds& ready);

  const int64_t worth_bytes_;
  ReadyIds ready_;
  ReadyIds absent_;  // for which no rank has a gradient
  int64_t coalesced_bytes_ = 0;
  std::vector<uint32_t> urgent_ids_;
  std::vector<uint32_t> released_ids_;
  wire::Report rest_;
};

}  // namespace hvdlite::negotiation
