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

}  // namespace hvdlite::timeline
