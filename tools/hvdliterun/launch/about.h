// What hvdliterun tells of itself and of this machine without a job: the texts
// of
// --version and --check-build.
#pragma once

#include <string>

#include "tools/hvdliterun/plan/flags.h"
#include "tools/hvdliterun/plan/surroundings.h"

namespace hvdlite::launch {

// Two lines: the version of hvdlite, and the launcher that a job would be
// started by here (`flags` may name its kind), or why there is none.
//
//   hvdliterun 0.1.0
//   launcher: mpirun (openmpi): mpirun (Open MPI) 4.1.4
std::string DescribeVersion(const Flags& flags,
                            const Surroundings& surroundings);

// A line for each fact: how hvdlite was built (compiler, UCX, the vectors of
// its kernels here), which MPI the launcher is of, whether --in-place can be
// had of it, this machine's cores and networks, and the libraries that --alloc
// can take. hvdliterun links neither LibTorch nor MPI: about those of a program
// hvdlite::build_info() and hvdlite_doctor tell.
std::string DescribeBuild(const Flags& flags, const Surroundings& surroundings);

}  // namespace hvdlite::launch
