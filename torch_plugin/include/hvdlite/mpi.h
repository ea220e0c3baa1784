// hvdlite in a program that has MPI itself, among some of its processes. With
// CMake it links MPI::MPI_CXX beside hvdlite::hvdlite.
#pragma once

#include <hvdlite/config.h>
#include <mpi.h>

namespace hvdlite {

// As init() (hvdlite/world.h), but the world is the ranks of `communicator`,
// numbered as there. Collective over these alone: other processes need not know
// of it, and those of disjoint communicators have worlds of their own. Where
// several have a timeline, each needs a path of its own (Config::timeline).
//
//   MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
//   MPI_Comm_split(MPI_COMM_WORLD, trains ? 0 : MPI_UNDEFINED, 0, &trainers);
//   if (trains) {
//     hvdlite::init(trainers);
//     ...
//     hvdlite::shutdown();
//   }
//
// The communicator is duplicated: it may be freed afterwards, and messages on
// it do not meet hvdlite's. The library and the program have to be built with
// the same MPI.
//
// Throws c10::Error as init() does, and where MPI is not initialised, or
// `communicator` is null or an intercommunicator.
void init(MPI_Comm communicator, const Config& config = Config::from_env());

}  // namespace hvdlite
