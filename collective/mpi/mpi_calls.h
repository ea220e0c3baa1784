// MPI's codes as text and statuses, its types and operations, and calls of MPI
// whose counts are bounded. For this directory only.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "collective/kernels/data_type.h"
#include "collective/ring/point_to_point.h"

namespace hvdlite::collective {

// MpiWorldHandle().
MPI_Comm MpiWorld();

// MPI's own words for a return code. MPI must be initialised.
std::string MpiErrorText(int return_code);

// OK for MPI_SUCCESS, else Unavailable: "MPI_Allreduce failed on rank 3: ...".
// `call` is the name of the MPI function.
absl::Status MpiCallStatus(int return_code, absl::string_view call, int rank);

// MPI_Barrier, which lets other threads compute while it waits.
int MpiBarrier(MPI_Comm comm);

// Owns the operations that MPI does not have, or not as the contract wants
// them: all of 16-bit floats; minimum and maximum of floats, for which MPI does
// not say what becomes of NaN, and of unsigned integers, which MPICH compares
// as if they had a sign (seen in 4.0.2); sums of 8-bit integers and of 16-bit
// ones, which saturate instead of wrapping around in Open MPI's AVX code (seen
// in 4.1.4). Not thread-safe; makes MPI calls.
class MpiOperations {
 public:
  // Errors: Unavailable when MPI fails. `rank` is for messages.
  static absl::StatusOr<std::unique_ptr<MpiOperations>> Create(int rank);

  // Frees the operations unless MPI has been finalized.
  ~MpiOperations();
  MpiOperations(const MpiOperations&) = delete;
  MpiOperations& operator=(const MpiOperations&) = delete;

  struct TypeAndOp {
    MPI_Datatype type;  // one element
    MPI_Op op;
  };
  // Valid as long as this object. Both arguments must be known values.
  TypeAndOp For(DataType dtype, ReduceOp op) const;

 private:
  MpiOperations();

  // By data type and operation; MPI_OP_NULL where MPI's own will do.
  std::array<std::array<MPI_Op, kNumReduceOps>, kNumDataTypes> created_;
};

// Collective calls of MPI. The operations are those of Communicator, with
// arguments that are right. Errors: Unavailable when MPI fails. Not
// thread-safe; makes MPI calls.
class BoundedMpiCalls {
 public:
  // Does not own `comm`, whose errors must be returned. MPI counts with int:
  // an allreduce or broadcast of more than `max_count` elements (bytes), 1 or
  // more, takes several calls; other buffers are smaller. `name_of_rank` is for
  // messages.
  BoundedMpiCalls(MPI_Comm comm, int64_t max_count, int name_of_rank);

  absl::Status Allreduce(absl::Span<std::byte> buffer, DataType dtype,
                         MpiOperations::TypeAndOp operation) const;
  absl::Status Broadcast(absl::Span<std::byte> buffer, int root) const;
  absl::Status Allgather(absl::Span<std::byte> buffer,
                         absl::Span<const size_t> bytes_of_rank) const;
  absl::Status ReduceScatter(absl::Span<std::byte> buffer,
                             absl::Span<const size_t> bytes_of_rank,
                             DataType dtype,
                             MpiOperations::TypeAndOp operation) const;
  absl::Status Alltoall(absl::Span<const std::byte> input,
                        absl::Span<const size_t> input_bytes,
                        absl::Span<std::byte> output,
                        absl::Span<const size_t> output_bytes) const;

  // Whether it is so on every rank.
  absl::StatusOr<bool> AllOf(bool mine) const;

 private:
  absl::Status Check(int return_code, absl::string_view call) const;

  const MPI_Comm comm_;
  const size_t max_count_;
  const int name_of_rank_;
};

// Messages of `comm`, which it does not own, and whose errors must be returned.
// `name_of_rank` is for errors.
std::unique_ptr<PointToPoint> CreateMpiMessages(MPI_Comm comm,
                                                int name_of_rank);

}  // namespace hvdlite::collective
