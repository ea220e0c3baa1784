#include "tools/doctor/world.h"

namespace hvdlite::doctor {

absl::StatusOr<std::unique_ptr<World>> StartMpiWorld() { return StartAlone(); }

}  // namespace hvdlite::doctor
