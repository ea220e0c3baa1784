// Runs the ranks of an in-process world as threads.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "tests/testing/in_process/in_process.h"

namespace hvdlite::testing {

// Calls body(rank) on one thread per rank; returns when all have returned.
inline void RunRanks(int size, const std::function<void(int rank)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back(body, rank);
  for (std::thread& thread : threads) thread.join();
}

// The same, with a communicator of a new in-process world for each rank. All
// communicators exist until every rank has returned.
inline void RunInProcessRanks(
    int size, const std::function<void(collective::Communicator&)>& body) {
  const auto world = collective::CreateInProcessWorld(size);
  RunRanks(size, [&](int rank) { body(*world[rank]); });
}

}  // namespace hvdlite::testing
