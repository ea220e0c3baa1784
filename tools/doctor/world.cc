#include "tools/doctor/world.h"

#include "base/environment.h"
#include "collective/communicator.h"

namespace hvdlite::doctor {

std::unique_ptr<InspectedRanks> StartAlone() {
  auto world = std::make_unique<InspectedRanks>();
  world->communicator = collective::CreateSingleRankCommunicator();
  const int lowest = 0;
  world->topology =
      collective::MakeTopology(0, {&lowest, 1}, {base::HostName()});
  return world;
}

}  // namespace hvdlite::doctor
