// Lists of numbers as messages carry them: few numbers where much repeats.
#pragma once

#include <google/protobuf/repeated_field.h>

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

namespace hvdlite::negotiation {

using NumberField = google::protobuf::RepeatedField<uint64_t>;

// Ids in their order. A run of ids that each follow the last takes two small
// numbers, whatever its length, and so does a whole step of a training that
// announces its tensors in the order of the first one. Any other id takes one.
void AppendIds(absl::Span<const uint32_t> ids, NumberField* field);

// Calls `visit` for each of them; stops when it returns false. Returns whether
// it came to the end, and the field is well-formed.
bool VisitIds(const NumberField& field,
              absl::FunctionRef<bool(uint32_t id)> visit);

// Values of which neighbours often are the same: each with how often it comes.
void AppendValues(absl::Span<const uint32_t> values, NumberField* field);

// Reads what AppendValues wrote.
class ValueReader {
 public:
  explicit ValueReader(const NumberField& field) : field_(field) {}

  // False: there are no more.
  bool Next(uint32_t* value);
  bool done() const { return left_ == 0 && next_ >= field_.size(); }

 private:
  const NumberField& field_;
  int next_ = 0;
  uint64_t left_ = 0;  // of the present value
  uint32_t value_ = 0;
};

}  // namespace hvdlite::negotiation
