// MpiWorld: the use of MPI by the benchmark itself.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

namespace hvdlite::tools {

// Initialises MPI, and finalizes it at the end. communicator() is a duplicate
// of MPI_COMM_WORLD that nobody else uses.
class MpiWorld {
 public:
  // `thread_level`: MPI_THREAD_SERIALIZED, or MPI_THREAD_MULTIPLE for calls
  // beside hvdlite. Throws std::runtime_error if this MPI has it not.
  MpiWorld(int* argc, char*** argv, int thread_level);
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  MPI_Comm communicator() const { return communicator_; }
  int rank() const;
  int size() const;
  // Whether all ranks are on one host, and so read the same clock.
  bool one_host() const { return one_host_; }
  // Every rank's text, in rank order. Collective.
  std::vector<std::string> Gather(const std::string& text) const;

 private:
  MPI_Comm communicator_ = MPI_COMM_NULL;
  bool one_host_ = false;
};

// "Open MPI v4.1.4"
std::string MpiLibrary();

}  // namespace hvdlite::tools
