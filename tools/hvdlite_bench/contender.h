// The two things that the benchmark compares, on one workload.
#pragma once

#include <ATen/core/Tensor.h>
#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

namespace hvdlite::tools {

// Float32 tensors that are reduced together, again and again.
struct Workload {
  std::string name;  // word for flags, tensor names and JSON
  std::string description;
  std::vector<int64_t> elements;  // of each tensor
  int repeats = 1;                // operations timed together in a round
};

// The three workloads of docs/benchmarks.md.
std::vector<Workload> StandardWorkloads();

int64_t TotalBytes(const Workload& workload);

// Reduces a workload through hvdlite's public API: all tensors are submitted,
// then waited for in reverse order.
class HvdliteContender {
 public:
  // Needs hvdlite::init().
  explicit HvdliteContender(const Workload& workload);

  // Fills every element with `value`.
  void Fill(float value);
  // Sums all tensors over the ranks, in place. Blocks until all are done.
  void Run();
  // Whether every element equals `value`.
  bool AllEqual(float value) const;

 private:
  std::vector<std::string> names_;
  std::vector<at::Tensor> tensors_;
};

// Reduces as many bytes with one MPI_Allreduce in place on one flat buffer.
class MpiContender {
 public:
  // `communicator` must not be used by hvdlite. Elements beyond INT_MAX are an
  // error (c10::Error).
  MpiContender(const Workload& workload, MPI_Comm communicator);

  void Fill(float value);
  void Run();
  bool AllEqual(float value) const;

 private:
  MPI_Comm communicator_;
  at::Tensor buffer_;
};

}  // namespace hvdlite::tools
