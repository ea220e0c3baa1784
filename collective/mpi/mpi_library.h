// What MPI libraries have apart, but for ULFM (mpi_world.h).
#pragma once

#include <string>

namespace hvdlite::collective {

// "Open MPI v4.1.4", "MPICH 4.0.2": what runs, not what was compiled against.
// Before MPI is initialised, too.
std::string MpiLibraryName();

// The name in what MPI_Get_library_version tells.
std::string MpiLibraryNameIn(const std::string& version);

// Before MPI is initialised: asks it to let other threads compute where it
// waits for a peer. A coordinator that shares a core with them would otherwise
// spin through its time slices while its peer, off its core, cannot answer.
// What the user has set stays.
void AskMpiToYield();

// Whether its blocking calls do as they are asked. MPICH's spin on Linux, as it
// is built by default, and nothing can be asked of them.
bool MpiYields();

}  // namespace hvdlite::collective
