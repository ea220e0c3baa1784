// NearProbe: how far apart the cores of ranks 0 and 1 are.
#pragma once

#include <mpi.h>

#include <cstdint>

namespace hvdlite::tools {

// Bounces a counter between ranks 0 and 1 through memory that they share; no
// message layer is involved, so that the figure means the same whichever MPI
// uses. Made, used and destroyed by all ranks together.
class NearProbe {
 public:
  explicit NearProbe(MPI_Comm communicator);
  ~NearProbe();
  NearProbe(const NearProbe&) = delete;
  NearProbe& operator=(const NearProbe&) = delete;

  // Nanoseconds, one way, the same on all ranks: the median of some batches.
  // NaN if ranks 0 and 1 share no memory or there is one rank only.
  double Measure();

 private:
  MPI_Comm communicator_;
  MPI_Comm node_ = MPI_COMM_NULL;
  MPI_Win window_ = MPI_WIN_NULL;
  int rank_ = 0;
  bool shared_ = false;                // ranks 0 and 1 are on one node
  uint32_t* counters_[2] = {nullptr};  // that ranks 0 and 1 write
  uint32_t count_ = 0;
};

}  // namespace hvdlite::tools
