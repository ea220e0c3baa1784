// MpiWorld: the benchmark's own use of MPI; and the ways to sum float32 tensors
// with MPI only.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "absl/types/span.h"

namespace hvdlite::tools {

// Initialises MPI in the constructor and finalizes it in the destructor.
// communicator() is a duplicate of MPI_COMM_WORLD for this program's calls.
class MpiWorld {
 public:
  // `thread_level` is MPI_THREAD_SERIALIZED, or MPI_THREAD_MULTIPLE for calls
  // in addition to hvdlite's. Throws std::runtime_error if this MPI lacks it.
  MpiWorld(int* argc, char*** argv, int thread_level);
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  MPI_Comm communicator() const { return communicator_; }
  int rank() const;
  int size() const;
  // True if all ranks are on one host and so read the same clock.
  bool one_host() const { return one_host_; }
  // Returns every rank's text, by rank. Collective.
  std::vector<std::string> Gather(const std::string& text) const;

 private:
  MPI_Comm communicator_ = MPI_COMM_NULL;
  bool one_host_ = false;
};

// Returns the cores that this thread may use, formatted by
// support::FormatCpuList().
std::string OwnCores();

// Checks an MPI return code; throws a std::runtime_error that names `call`.
void CheckMpi(int code, const char* call);

// One MPI_Allreduce in place; at most INT_MAX elements
// (std::invalid_argument).
void MpiAllreduce(absl::Span<float> data, MPI_Comm communicator);

// Elements of an MPI call where the data is divided into chunks: 1 MiB.
inline constexpr int64_t kMpiChunkElements = (int64_t{1} << 20) / sizeof(float);

// The same, in calls of at most `chunk_elements` elements.
void MpiAllreduceInChunks(absl::Span<float> data, int64_t chunk_elements,
                          MPI_Comm communicator);

// One call per tensor, in place.
void MpiAllreduceEach(absl::Span<const absl::Span<float>> tensors,
                      MPI_Comm communicator);

// Copies the tensors, as if they were contiguous, into `buffer`, reduces them
// there and copies them back. Repeats this until all tensors are done; once is
// enough if the buffer is large enough. Each call but the last uses the whole
// buffer.
void MpiAllreducePacked(absl::Span<const absl::Span<float>> tensors,
                        absl::Span<float> buffer, MPI_Comm communicator);

}  // namespace hvdlite::tools
