#include "negotiation/request.h"

#include <functional>
#include <numeric>

namespace hvdlite::negotiation {

absl::string_view NameOf(Collective collective) {
  switch (collective) {
    case Collective::kAllreduce:
      return "ALLREDUCE";
    case Collective::kBroadcast:
      return "BROADCAST";
    case Collective::kBarrier:
      return "BARRIER";
  }
  return "UNKNOWN";
}

int64_t Request::size_bytes() const {
  if (collective == Collective::kBarrier) return 0;
  return std::accumulate(shape.begin(), shape.end(),
                         static_cast<int64_t>(collective::SizeOf(dtype)),
                         std::multiplies<>());
}

}  // namespace hvdlite::negotiation
