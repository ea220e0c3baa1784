#include "timeline/read/trace.h"

#include <algorithm>

namespace hvdlite::timeline {

int64_t TraceProcess::Fact(absl::string_view fact, int64_t fallback) const {
  return NumberOf(facts, fact, fallback);
}

std::string TraceProcess::TextFact(absl::string_view fact) const {
  return TextOf(facts, fact);
}

const SliceDetails& Trace::DetailsOf(const TraceSlice& slice) const {
  static const SliceDetails kNone;
  return slice.details < 0 ? kNone
                           : details[static_cast<size_t>(slice.details)];
}

std::optional<size_t> Trace::FindName(absl::string_view name) const {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<size_t>(found - names.begin());
}

}  // namespace hvdlite::timeline
