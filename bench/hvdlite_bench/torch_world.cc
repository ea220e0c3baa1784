#include "bench/hvdlite_bench/torch_world.h"

#include <hvdlite/world.h>

namespace hvdlite::tools {

TorchWorld::TorchWorld(const Run& run)
    : mpi_(run.argc, run.argv, MPI_THREAD_MULTIPLE) {
  init();
}

TorchWorld::~TorchWorld() { shutdown(); }

Results StartResults(const Run& run, const TorchWorld& world) {
  Results results = StartResults(run, world.mpi());
  results.notes.push_back(
      "MPI is initialised with MPI_THREAD_MULTIPLE, because this program calls "
      "it beside hvdlite; both sides pay for its locks.");
  return results;
}

std::vector<Mode> TorchModes() {
  return {GradientsMode(), LatencyMode(), SubmitMode(), IdleMode(),
          TraceMode(), ChecksMode()};
}

}  // namespace hvdlite::tools
