// The texts of --version and --check-build: facts about hvdliterun and this
// machine.
#pragma once

#include <string>

#include "tools/hvdliterun/plan/flags.h"
#include "tools/hvdliterun/plan/host_environment.h"

namespace hvdlite::launch {

// Two lines: the version of hvdlite, and the launcher that would start a job
// here (`flags` may name its kind) or the reason why there is none.
//
//   hvdliterun 0.1.0
//   launcher: mpirun (openmpi): mpirun (Open MPI) 4.1.4
std::string DescribeVersion(const Flags& flags,
                            const HostEnvironment& host_environment);

// One line for each fact: how hvdlite was built (compiler, UCX, the vectors of
// its kernels here), the MPI of the launcher, whether it supports --in-place,
// this machine's cores and networks, and the libraries for --alloc. hvdliterun
// links neither LibTorch nor MPI; hvdlite::build_info() and hvdlite_doctor
// report those of a program.
std::string DescribeBuild(const Flags& flags,
                          const HostEnvironment& host_environment);

}  // namespace hvdlite::launch
