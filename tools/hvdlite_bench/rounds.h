// Interleaved rounds of several contenders.
#pragma once

#include <mpi.h>

#include <functional>
#include <vector>

#include "tools/hvdlite_bench/near_probe.h"
#include "tools/hvdlite_bench/results.h"

namespace hvdlite::tools {

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

// The order of `contenders` in a round: each is first in turn.
std::vector<size_t> OrderOfRound(size_t contenders, int round);

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
