#include "tools/doctor/world.h"

#include <unistd.h>

#include <array>

#include "collective/in_process/in_process_communicator.h"

namespace hvdlite::doctor {

std::unique_ptr<InspectedRanks> StartAlone() {
  auto world = std::make_unique<InspectedRanks>();
  world->communicator = std::move(collective::CreateInProcessWorld(1).front());
  std::array<char, 256> host = {};
  gethostname(host.data(), host.size() - 1);
  const int lowest = 0;
  world->topology = collective::MakeTopology(0, {&lowest, 1}, {host.data()});
  return world;
}

}  // namespace hvdlite::doctor
