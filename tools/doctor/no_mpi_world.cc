#include "tools/doctor/world.h"

namespace hvdlite::doctor {

absl::StatusOr<std::unique_ptr<InspectedRanks>> StartWithMpi() {
  return StartAlone();
}

}  // namespace hvdlite::doctor
