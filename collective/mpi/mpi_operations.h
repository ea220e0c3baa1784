// MPI's datatypes and operations for the project's. Only for this folder: it
// includes mpi.h.
#pragma once

#include <mpi.h>

#include <array>
#include <memory>

#include "absl/status/statusor.h"
#include "collective/kernels/data_type.h"

namespace hvdlite::collective {

// Owns the operations that MPI does not have, or not as the contract wants
// them: all of 16-bit floats; minimum and maximum of floats, for which MPI does
// not say what becomes of NaN; sums of 8-bit integers, which saturate instead
// of wrapping around in Open MPI's AVX code (seen in 4.1.4). Not thread-safe;
// makes MPI calls.
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

}  // namespace hvdlite::collective
