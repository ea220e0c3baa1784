#include "negotiation/protocol/number_runs.h"

#include <cstddef>
#include <limits>

namespace hvdlite::negotiation {
namespace {

// Small for small numbers of either sign.
uint64_t Zigzag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^
         static_cast<uint64_t>(value >> 63);
}

int64_t FromZigzag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

constexpr uint64_t kMaxId = std::numeric_limits<uint32_t>::max();

}  // namespace

void AppendIds(absl::Span<const uint32_t> ids, NumberField* field) {
  int64_t expected = 0;  // where the last run would have gone on
  for (size_t begin = 0; begin < ids.size();) {
    size_t end = begin + 1;
    while (end < ids.size() && ids[end] == ids[end - 1] + uint64_t{1}) ++end;
    const bool several = end - begin > 1;
    field->Add(Zigzag(ids[begin] - expected) << 1 | (several ? 1 : 0));
    if (several) field->Add(end - begin - 2);
    expected = int64_t{ids[end - 1]} + 1;
    begin = end;
  }
}

bool VisitIds(const NumberField& field,
              absl::FunctionRef<bool(uint32_t id)> visit) {
  int64_t expected = 0;
  for (int i = 0; i < field.size(); ++i) {
    const bool several = (field.Get(i) & 1) != 0;
    // Neither term comes near the limits of int64_t.
    const int64_t offset = FromZigzag(field.Get(i) >> 1);
    if (offset < -static_cast<int64_t>(kMaxId) - 1 ||
        offset > static_cast<int64_t>(kMaxId)) {
      return false;
    }
    const int64_t first = expected + offset;
    uint64_t more = 0;  // after the first
    if (several) {
      if (++i == field.size() || field.Get(i) >= kMaxId) return false;
      more = field.Get(i) + 1;
    }
    if (first < 0 || static_cast<uint64_t>(first) + more > kMaxId) return false;
    for (uint64_t id = first; id <= static_cast<uint64_t>(first) + more; ++id) {
      if (!visit(static_cast<uint32_t>(id))) return false;
    }
    expected = first + static_cast<int64_t>(more) + 1;
  }
  return true;
}

void AppendValues(absl::Span<const uint32_t> values, NumberField* field) {
  for (size_t begin = 0; begin < values.size();) {
    size_t end = begin + 1;
    while (end < values.size() && values[end] == values[begin]) ++end;
    field->Add(values[begin]);
    field->Add(end - begin);
    begin = end;
  }
}

bool ValueReader::Next(uint32_t* value) {
  while (left_ == 0) {
    if (next_ + 1 >= field_.size()) return false;
    value_ = static_cast<uint32_t>(field_.Get(next_));
    left_ = field_.Get(next_ + 1);
    next_ += 2;
  }
  --left_;
  *value = value_;
  return true;
}

}  // namespace hvdlite::negotiation
