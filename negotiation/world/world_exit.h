// What happens when a process exits, or finalizes MPI, without shutdown().
#pragma once

namespace hvdlite::internal {

// Registers, once per process, an exit handler that tells the other ranks that
// this one is gone and takes the world down; it takes 20 s at most. A process
// that cannot be taken down cleanly ends there by _exit, with its exit code.
void InstallExitHandler();

// To be called at the beginning of MPI_Finalize, the last moment at which the
// world can use MPI: as shutdown(), with a warning where there is a world.
void LeaveAtFinalize();

}  // namespace hvdlite::internal
