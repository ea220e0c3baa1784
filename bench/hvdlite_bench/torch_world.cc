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
      "MPI in addition to hvdlite; its locks slow both sides.");
  return results;
}

std::vector<Mode> TorchModes() {
  return {GradientsMode(), LatencyMode(), SubmitMode(), IdleMode(),
          TraceMode(), ChecksMode()};
}

}  // namespace hvdlite::tools
