// What MPI libraries have apart, but for ULFM (mpi_world.h).
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hvdlite::collective {

// "Open MPI v4.1.4", "MPICH 4.0.2 (ch4:ucx)": what runs, not what was compiled
// against. Before MPI is initialised, too.
std::string MpiLibraryName();

// The name in what MPI_Get_library_version tells.
std::string MpiLibraryNameIn(absl::string_view version);

// Before MPI is initialised: asks it to let other threads compute where it
// waits for a peer. A coordinator that shares a core with them would otherwise
// spin through its time slices while its peer, off its core, cannot answer.
// What the user has set stays.
void AskMpiToYield();

// Whether its blocking calls do as they are asked. MPICH's spin on Linux, as it
// is built by default, and nothing can be asked of them.
bool MpiYields();

// MPI_Finalize, and its return code. Collective.
int FinalizeMpi();

// Whether a rank may wait in this library's MPI_Finalize for ever for those of
// other hosts, unless none of them looks at messages between its own last call
// and MPI_Finalize. MPICH's over UCX and TCP before 4.2: a rank leaves once all
// its peers have acknowledged its last bytes, as they do wherever they look at
// messages, and afterwards acknowledges none of theirs.
bool FinalizeNeedsQuiet(absl::string_view library_name);

}  // namespace hvdlite::collective
