// Interleaved rounds of several implementations, and NearProbe, which measures
// the distance between the cores of ranks 0 and 1.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "bench/hvdlite_bench/results.h"

namespace hvdlite::tools {

// Bounces a counter between ranks 0 and 1 through memory that they share. No
// message layer is involved, so the result does not depend on MPI. All ranks
// create, use and destroy it together.
class NearProbe {
 public:
  explicit NearProbe(MPI_Comm communicator);
  ~NearProbe();
  NearProbe(const NearProbe&) = delete;
  NearProbe& operator=(const NearProbe&) = delete;

  // Returns nanoseconds, one way, the same on all ranks: the median of some
  // batches. NaN if ranks 0 and 1 share no memory, or if there is only one
  // rank.
  double Measure();

 private:
  MPI_Comm communicator_;
  MPI_Comm node_ = MPI_COMM_NULL;
  MPI_Win window_ = MPI_WIN_NULL;
  int rank_ = 0;
  bool shared_ = false;                // ranks 0 and 1 are on one node
  uint32_t* counters_[2] = {nullptr};  // written by ranks 0 and 1
  uint32_t count_ = 0;
};

// Takes one sample. Collective: every rank calls it and gets the same sample.
using TakeSample = std::function<Sample()>;

// A case with the functions that take the samples of its implementations. The
// function of a skipped implementation is empty.
struct Plan {
  Case result;
  std::vector<TakeSample> samplers;  // like result.implementations

  void Add(std::string name, Role role, TakeSample sampler);
  void Skip(std::string name, Role role, std::string reason);
};

// Runs `rounds` rounds of all plans, after `warmup` unrecorded ones. In a round
// each plan's implementations run one after the other. The distance of the
// cores is measured before and after. Collective.
void RunRounds(std::vector<Plan>& plans, int rounds, int warmup,
               NearProbe& probe);

// Returns the microseconds of one run on the slowest rank: the mean of
// `repeats` runs in a row, which all ranks start together. Collective.
double TimeRuns(const std::function<void()>& run, int repeats,
                MPI_Comm communicator);

// Returns the sum of a count over all ranks. Collective.
int64_t SumOverRanks(int64_t count, MPI_Comm communicator);

}  // namespace hvdlite::tools
