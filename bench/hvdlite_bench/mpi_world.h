// MpiWorld: the use of MPI by the benchmark itself; and the ways in which a
// program would sum float32 tensors with MPI alone.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "absl/types/span.h"

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

// That this thread may use, as support::FormatCpuList().
std::string OwnCores();

// Checks an MPI return code; throws std::runtime_error naming `call`.
void CheckMpi(int code, const char* call);

// One MPI_Allreduce in place; at most INT_MAX elements
// (std::invalid_argument).
void MpiAllreduce(absl::Span<float> data, MPI_Comm communicator);

// What MPI gets at a time, where it gets chunks: 1 MiB.
inline constexpr int64_t kMpiChunkElements = (int64_t{1} << 20) / sizeof(float);

// The same, in calls of at most `chunk_elements` elements.
void MpiAllreduceInChunks(absl::Span<float> data, int64_t chunk_elements,
                          MPI_Comm communicator);

// One call per tensor, in place.
void MpiAllreduceEach(absl::Span<const absl::Span<float>> tensors,
                      MPI_Comm communicator);

// The tensors, as if they lay one after the other, are copied into `buffer`,
// reduced there and copied back, as often as it takes to get all through: once
// if the buffer is large enough. Whatever their sizes, each call but the last
// has a full buffer.
void MpiAllreducePacked(absl::Span<const absl::Span<float>> tensors,
                        absl::Span<float> buffer, MPI_Comm communicator);

}  // namespace hvdlite::tools
