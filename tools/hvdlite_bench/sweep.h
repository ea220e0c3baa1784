// sweep: allreduce of one array, from a few bytes to hundreds of megabytes.
#pragma once

#include <cstdint>
#include <string>

#include "tools/hvdlite_bench/mpi_world.h"
#include "tools/hvdlite_bench/results.h"

namespace hvdlite::tools {

struct SweepFlags {
  int64_t min_bytes = 4;
  int64_t max_bytes = int64_t{256} << 20;
  // The coordinator hands the data plane no more than this at a time, unless it
  // reduces in passes of its own.
  int64_t chunk_bytes = int64_t{4} << 20;
  bool pack = false;  // through a buffer, as tensors go
  // As a thread of the application does that waits for an operation.
  int64_t spin_us = 50;
  // A file with another AllreduceTable than the built-in one; empty: none.
  std::string table;
  int rounds = 10;
  int warmup = 2;
};

// Fills in the cases and notes of `results`: one case per power of two.
// Without `pack`, the array is reduced in place: by each communicator of
// hvdlite (in memory that it has allocated, too, where that makes a
// difference), by one MPI_Allreduce, and by MPI in chunks of 1 MB. With `pack`
// the array is a tensor: FusedAllreduce against MPI through a copy. Every
// sample begins with a run, not timed, whose result is checked.
//
// Collective. Throws std::runtime_error.
void Sweep(const SweepFlags& flags, const MpiWorld& world, Results& results);

// How often an array of so many bytes is reduced for one sample.
int RepeatsFor(int64_t bytes);

}  // namespace hvdlite::tools
