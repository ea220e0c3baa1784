#include "tools/doctor/world.h"

#include "base/environment.h"
#include "collective/in_process/in_process_communicator.h"

namespace hvdlite::doctor {

std::unique_ptr<InspectedRanks> StartAlone() {
  auto world = std::make_unique<InspectedRanks>();
  world->communicator = std::move(collective::CreateInProcessWorld(1).front());
  const int lowest = 0;
  world->topology =
      collective::MakeTopology(0, {&lowest, 1}, {base::HostName()});
  return world;
}

}  // namespace hvdlite::doctor
