// A world whose rank 1 is stopped before it starts: "stopped_start MOMENT".
// MOMENT is before_mpi or, if the program owns MPI, before_hvdlite. The other
// rank prints on stderr how the start ends.
#include <mpi.h>

#include <csignal>
#include <cstdio>
#include <string>

#include "base/config/config_loader.h"
#include "base/environment.h"
#include "base/launcher_environment.h"
#include "negotiation/world/world.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const hvdlite::base::Environment& environment =
      hvdlite::base::ProcessEnvironment();
  if (std::string(argv[1]) == "before_hvdlite") {
    int level = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  }
  if (hvdlite::base::RankOfLauncher(environment) == 1) std::raise(SIGSTOP);
  const auto config = hvdlite::LoadConfig(environment);
  if (!config.ok()) return 3;
  const auto world = hvdlite::internal::World::Start(*config);
  std::fprintf(stderr, "the start has ended: %s\n",
               world.status().ToString().c_str());
  return 4;
}
