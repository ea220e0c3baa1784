// The world: the processes that train together.
//
//   hvdlite::init();
//   ... train on rank hvdlite::rank() of hvdlite::size() ...
//   hvdlite::shutdown();
#pragma once

#include <hvdlite/config.h>

#include <string>

namespace hvdlite {

// Joins the world and starts the background thread. Collective: every rank
// calls it, and it succeeds or throws on all ranks. Initialises MPI with
// MPI_THREAD_SERIALIZED unless the program has initialised it. In that case the
// program needs MPI_THREAD_SERIALIZED, or MPI_THREAD_MULTIPLE if it calls MPI
// between init() and shutdown().
//
// Without arguments the configuration comes from the environment
// (Config::from_env()).
//
// Throws c10::ValueError if the configuration is not valid or differs between
// ranks; the error names them. Throws another c10::Error if it is called twice
// without shutdown(), if there are fewer ranks than the launcher has started,
// or if MPI fails.
//
// A process that is forked from a rank cannot use the world: init(), shutdown()
// and all functions that need init() throw c10::Error there, and destructors do
// nothing. The rank itself is not affected.
void init();
void init(const Config& config);

// Leaves the world. Collective: blocks until every rank has called it.
// Operations that all ranks have submitted still run; other pending ones fail.
// Writes the timeline. Then finalizes MPI if init() has initialised it; init()
// cannot be called again in this process then. A program that has initialised
// MPI itself calls shutdown() before MPI_Finalize. Does nothing without init().
// Only logs a warning if the world is broken. Throws c10::Error after
// Config::shutdown_timeout_seconds.
//
// If a process exits without shutdown(), an exit handler leaves the world, and
// operations of the other ranks fail with WorldBroken.
void shutdown();

// True between init() and shutdown(), also if the world is broken. False in a
// process that was forked from a rank.
bool is_initialized();

// Returns what this library was built with and runs on, one line each:
// "MPI: Open MPI v4.1.4, ...", "kernels: AVX3, 64 bytes". May be called before
// init().
std::string build_info();

// The functions below throw c10::Error before init().

// The number of this process in the world, and the number of processes:
// 0 <= rank() < size().
int rank();
int size();
// The number of this process among the ranks of its host, in rank order, and
// the number of these ranks.
int local_rank();
int local_size();
// The number of this host among the hosts, in the order of their lowest ranks,
// and the number of hosts.
int cross_rank();
int cross_size();
// Whether all hosts have the same number of ranks.
bool is_homogeneous();

}  // namespace hvdlite
