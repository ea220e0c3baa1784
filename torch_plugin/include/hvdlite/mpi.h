// Runs hvdlite on some processes of a program that uses MPI itself. With CMake,
// link MPI::MPI_CXX in addition to hvdlite::hvdlite.
#pragma once

#include <hvdlite/config.h>
#include <mpi.h>

namespace hvdlite {

// Like init() (hvdlite/world.h), but the world consists of the ranks of
// `communicator`, with the same numbers. Collective over these ranks only.
// Disjoint communicators have separate worlds. If several of them record a
// timeline, each needs its own path (Config::timeline).
//
//   MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
//   MPI_Comm_split(MPI_COMM_WORLD, trains ? 0 : MPI_UNDEFINED, 0, &trainers);
//   if (trains) {
//     hvdlite::init(trainers);
//     ...
//     hvdlite::shutdown();
//   }
//
// init() duplicates the communicator. So the program may free it afterwards,
// and its messages do not mix with hvdlite's. Build the library and the program
// with the same MPI.
//
// Throws c10::Error like init(), and also if MPI is not initialised, or if
// `communicator` is null or an intercommunicator.
void init(MPI_Comm communicator, const Config& config = Config::from_env());

}  // namespace hvdlite
