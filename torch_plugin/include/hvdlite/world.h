// The world: the processes that train together.
#pragma once

#include <hvdlite/config.h>

#include <string>

namespace hvdlite {

// Joins the world and starts the coordinator's thread. Collective: every rank
// calls it, and it returns on all or fails. MPI is initialised
// (MPI_THREAD_SERIALIZED) unless the program has done so; then SERIALIZED is
// required, or MULTIPLE where the program calls MPI while the world stands.
//
// Without arguments the configuration comes from the environment
// (Config::from_env()).
//
// Throws c10::ValueError: a configuration that cannot be used, or that differs
// between ranks (which it names). Other c10::Error: called twice without
// shutdown() between; fewer ranks than the launcher promised; MPI trouble.
//
// A process that a rank forks is no rank: whatever needs init(), and init() and
// shutdown() themselves, throw c10::Error there, destructors do nothing, and the
// rank goes on undisturbed.
void init();
void init(const Config& config);

// Leaves the world. Collective: blocks until every rank has called it. What was
// submitted on all ranks still runs; everything else that is pending fails.
// Writes the timeline, then finalizes MPI if init() initialised it (init() can
// then not be called again in this process); a program that initialised MPI
// itself calls it before MPI_Finalize. Does nothing if not initialised.
// Where the world broke it only logs that. Throws c10::Error after
// Config::shutdown_timeout_seconds.
//
// A process that exits without it is shut down by an exit handler; the other
// ranks' operations then fail with WorldBroken.
void shutdown();

// True between init() and shutdown(), also when the world broke. False in a
// process that was forked from a rank.
bool is_initialized();

// What this library was built with and runs on, a line each: "MPI: Open MPI
// v4.1.4, ...", "kernels: AVX3, 64 bytes". Before init(), too.
std::string build_info();

// The functions below throw c10::Error before init().

// Of this process in the world: 0 <= rank() < size().
int rank();
int size();
// Among the ranks of this host, in rank order.
int local_rank();
int local_size();
// Of this host among the hosts, in the order of their lowest ranks.
int cross_rank();
int cross_size();
// Whether all hosts have as many ranks.
bool is_homogeneous();

}  // namespace hvdlite
