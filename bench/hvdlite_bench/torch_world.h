// TorchWorld: hvdlite, together with MPI for comparison.
#pragma once

#include "bench/hvdlite_bench/mode.h"
#include "bench/hvdlite_bench/mpi_world.h"

namespace hvdlite::tools {

// Calls init() and shutdown() of hvdlite while this program uses MPI itself.
// This requires MPI_THREAD_MULTIPLE, whose locks slow both sides.
class TorchWorld {
 public:
  explicit TorchWorld(const Run& run);
  ~TorchWorld();
  TorchWorld(const TorchWorld&) = delete;
  TorchWorld& operator=(const TorchWorld&) = delete;

  const MpiWorld& mpi() const { return mpi_; }

 private:
  MpiWorld mpi_;
};

// Like StartResults(), with a note about the thread level.
Results StartResults(const Run& run, const TorchWorld& world);

Mode ChecksMode();
Mode GradientsMode();
Mode LatencyMode();
Mode SubmitMode();
Mode IdleMode();
Mode TraceMode();

}  // namespace hvdlite::tools
