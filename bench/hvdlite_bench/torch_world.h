// TorchWorld: hvdlite, with MPI beside it for comparison.
#pragma once

#include "bench/hvdlite_bench/mode.h"
#include "bench/hvdlite_bench/mpi_world.h"

namespace hvdlite::tools {

// init() and shutdown() of hvdlite, inside a use of MPI that calls MPI from
// this program, too: hence with MPI_THREAD_MULTIPLE, whose locks both sides pay
// for.
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

// As StartResults(), with a note about the thread level.
Results StartResults(const Run& run, const TorchWorld& world);

Mode ChecksMode();
Mode GradientsMode();
Mode LatencyMode();
Mode SubmitMode();
Mode IdleMode();
Mode TraceMode();

}  // namespace hvdlite::tools
