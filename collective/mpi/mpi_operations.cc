#include "collective/mpi/mpi_operations.h"

#include <cstddef>

#include "absl/memory/memory.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "collective/kernels/reduction_kernels.h"
#include "collective/mpi/mpi_status.h"

namespace hvdlite::collective {
namespace {

struct CustomOperation {
  DataType dtype;
  ReduceOp op;
  MPI_User_function* function;
};

// An MPI_User_function.
template <DataType dtype, ReduceOp op>
void CombineElements(void* in, void* inout, int* count, MPI_Datatype*) {
  const size_t bytes = static_cast<size_t>(*count) * SizeOf(dtype);
  Reduce(op, dtype, absl::MakeConstSpan(static_cast<std::byte*>(in), bytes),
         absl::MakeSpan(static_cast<std::byte*>(inout), bytes));
}

template <DataType dtype, ReduceOp op>
constexpr CustomOperation Custom() {
  return {dtype, op, &CombineElements<dtype, op>};
}

constexpr CustomOperation kCustomOperations[] = {
    Custom<DataType::kFloat16, ReduceOp::kSum>(),
    Custom<DataType::kFloat16, ReduceOp::kMin>(),
    Custom<DataType::kFloat16, ReduceOp::kMax>(),
    Custom<DataType::kFloat16, ReduceOp::kProduct>(),
    Custom<DataType::kBFloat16, ReduceOp::kSum>(),
    Custom<DataType::kBFloat16, ReduceOp::kMin>(),
    Custom<DataType::kBFloat16, ReduceOp::kMax>(),
    Custom<DataType::kBFloat16, ReduceOp::kProduct>(),
    Custom<DataType::kFloat32, ReduceOp::kMin>(),
    Custom<DataType::kFloat32, ReduceOp::kMax>(),
    Custom<DataType::kFloat64, ReduceOp::kMin>(),
    Custom<DataType::kFloat64, ReduceOp::kMax>(),
    Custom<DataType::kUint8, ReduceOp::kSum>(),
    Custom<DataType::kInt8, ReduceOp::kSum>(),
};

// Sums and products of integers wrap around: unsigned arithmetic gives the same
// bits, and its overflow is defined.
MPI_Datatype TypeOf(DataType dtype, ReduceOp op) {
  const bool wraps = op == ReduceOp::kSum || op == ReduceOp::kProduct;
  switch (dtype) {
    case DataType::kFloat32:
      return MPI_FLOAT;
    case DataType::kFloat64:
      return MPI_DOUBLE;
    case DataType::kFloat16:
    case DataType::kBFloat16:
      return MPI_UINT16_T;
    case DataType::kInt32:
      return wraps ? MPI_UINT32_T : MPI_INT32_T;
    case DataType::kInt64:
      return wraps ? MPI_UINT64_T : MPI_INT64_T;
    case DataType::kInt8:
      return wraps ? MPI_UINT8_T : MPI_INT8_T;
    case DataType::kUint8:
    case DataType::kBool:
      return MPI_UINT8_T;
  }
  return MPI_DATATYPE_NULL;
}

MPI_Op BuiltInOp(DataType dtype, ReduceOp op) {
  const bool is_bool = dtype == DataType::kBool;
  switch (op) {
    case ReduceOp::kSum:
      return is_bool ? MPI_LOR : MPI_SUM;
    case ReduceOp::kMin:
      return is_bool ? MPI_LAND : MPI_MIN;
    case ReduceOp::kMax:
      return is_bool ? MPI_LOR : MPI_MAX;
    case ReduceOp::kProduct:
      return is_bool ? MPI_LAND : MPI_PROD;
  }
  return MPI_OP_NULL;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MpiOperations>> MpiOperations::Create(int rank) {
  auto operations = absl::WrapUnique(new MpiOperations);
  for (const CustomOperation& custom : kCustomOperations) {
    MPI_Op& created = operations->created_[static_cast<int>(custom.dtype)]
                                          [static_cast<int>(custom.op)];
    HVDLITE_RETURN_IF_ERROR(
        MpiCallStatus(MPI_Op_create(custom.function, /*commute=*/1, &created),
                      "MPI_Op_create", rank));
  }
  return operations;
}

MpiOperations::MpiOperations() {
  for (auto& by_op : created_) by_op.fill(MPI_OP_NULL);
}

MpiOperations::~MpiOperations() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized) return;
  for (auto& by_op : created_) {
    for (MPI_Op& op : by_op) {
      if (op != MPI_OP_NULL) MPI_Op_free(&op);
    }
  }
}

MpiOperations::TypeAndOp MpiOperations::For(DataType dtype, ReduceOp op) const {
  const MPI_Op created =
      created_[static_cast<int>(dtype)][static_cast<int>(op)];
  return {TypeOf(dtype, op),
          created != MPI_OP_NULL ? created : BuiltInOp(dtype, op)};
}

}  // namespace hvdlite::collective
