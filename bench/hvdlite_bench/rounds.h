// Interleaved rounds of several contenders, and NearProbe: how far apart the
// cores of ranks 0 and 1 are.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "bench/hvdlite_bench/results.h"

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

// Takes one sample. Collective: every rank calls it and gets the same.
using TakeSample = std::function<Sample()>;

// A case with what takes the samples of each of its contenders. A sampler that
// is empty belongs to a contender that is skipped.
struct Plan {
  Case result;
  std::vector<TakeSample> samplers;  // as result.contenders

  void Add(std::string name, Role role, TakeSample sampler);
  void Skip(std::string name, Role role, std::string reason);
};

// Runs `rounds` rounds of all plans, after `warmup` that are not recorded. In a
// round each plan's contenders run one after the other, between two looks at
// how far the cores are apart. Collective.
void RunRounds(std::vector<Plan>& plans, int rounds, int warmup,
               NearProbe& probe);

// Microseconds that one run takes on the slowest rank, as the mean of `repeats`
// in a row, begun together. Collective.
double TimeRuns(const std::function<void()>& run, int repeats,
                MPI_Comm communicator);

// The sum of a count over all ranks. Collective.
int64_t SumOverRanks(int64_t count, MPI_Comm communicator);

}  // namespace hvdlite::tools
