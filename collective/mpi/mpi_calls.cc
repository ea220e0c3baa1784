#include "collective/mpi/mpi_calls.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collective/communicator.h"
#include "collective/kernels/reduction_kernels.h"
#include "collective/mpi/mpi_library.h"

namespace hvdlite::collective {
namespace {

// An MPI_User_function.
template <DataType dtype, ReduceOp op>
void CombineElements(void* in, void* inout, int* count, MPI_Datatype*) {
  const size_t bytes = static_cast<size_t>(*count) * SizeOf(dtype);
  Reduce(op, dtype, absl::MakeConstSpan(static_cast<std::byte*>(in), bytes),
         absl::MakeSpan(static_cast<std::byte*>(inout), bytes));
}

// CombineElements, by data type and operation.
using UserFunctions =
    std::array<std::array<MPI_User_function*, kNumReduceOps>, kNumDataTypes>;

template <size_t... cells>
constexpr UserFunctions MakeUserFunctions(std::index_sequence<cells...>) {
  UserFunctions functions = {};
  ((functions[cells / kNumReduceOps][cells % kNumReduceOps] =
        &CombineElements<static_cast<DataType>(cells / kNumReduceOps),
                         static_cast<ReduceOp>(cells % kNumReduceOps)>),
   ...);
  return functions;
}

constexpr UserFunctions kUserFunctions = MakeUserFunctions(
    std::make_index_sequence<kNumDataTypes * kNumReduceOps>());

// Whether MPI lacks the operation, or does not have it as the contract wants
// it; see MpiOperations.
bool NeedsOwnOperation(const DataTypeTraits& type, ReduceOp op) {
  const bool compares = op == ReduceOp::kMin || op == ReduceOp::kMax;
  switch (type.kind) {
    case NumberKind::kFloat:
      return type.bytes <= 2 || compares;
    case NumberKind::kSigned:
      return type.bytes <= 2 && op == ReduceOp::kSum;
    case NumberKind::kUnsigned:
      return compares || (type.bytes <= 2 && op == ReduceOp::kSum);
    case NumberKind::kBool:
    case NumberKind::kComplex:  // sums alone
      return false;
  }
  return true;
}

// Of what has an operation of its own, the size alone counts. Sums and products
// of integers wrap around: unsigned arithmetic gives the same bits, and its
// overflow is defined.
MPI_Datatype TypeOf(DataType dtype, ReduceOp op) {
  const DataTypeTraits& type = *FindTraits(dtype);
  if (type.kind == NumberKind::kComplex) {
    return type.bytes == 8 ? MPI_C_FLOAT_COMPLEX : MPI_C_DOUBLE_COMPLEX;
  }
  const bool is_float = type.kind == NumberKind::kFloat;
  const bool is_signed = type.kind == NumberKind::kSigned &&
                         op != ReduceOp::kSum && op != ReduceOp::kProduct;
  switch (type.bytes) {
    case 1:
      return is_signed ? MPI_INT8_T : MPI_UINT8_T;
    case 2:
      return is_signed ? MPI_INT16_T : MPI_UINT16_T;
    case 4:
      return is_float ? MPI_FLOAT : is_signed ? MPI_INT32_T : MPI_UINT32_T;
    case 8:
      return is_float ? MPI_DOUBLE : is_signed ? MPI_INT64_T : MPI_UINT64_T;
  }
  return MPI_DATATYPE_NULL;
}

MPI_Op BuiltInOp(DataType dtype, ReduceOp op) {
  const bool is_bool = FindTraits(dtype)->kind == NumberKind::kBool;
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

// Waits for the request as MPI_Wait does, and yields meanwhile.
int Await(MPI_Request* request, MPI_Status* status = MPI_STATUS_IGNORE) {
  if (MpiYields()) return MPI_Wait(request, status);
  for (;;) {
    int done = 0;
    const int return_code = MPI_Test(request, &done, status);
    if (return_code != MPI_SUCCESS || done != 0) return return_code;
    sched_yield();
  }
}

// A collective call, by the first of the two, or, where that would not yield
// while it waits, by the second.
template <typename Blocking, typename Nonblocking, typename... Arguments>
int Collective(Blocking* blocking, Nonblocking* nonblocking,
               Arguments... arguments) {
  if (MpiYields()) return blocking(arguments...);
  MPI_Request request = MPI_REQUEST_NULL;
  const int return_code = nonblocking(arguments..., &request);
  return return_code == MPI_SUCCESS ? Await(&request) : return_code;
}

// Calls some_bytes(piece) for one piece of `buffer` after the other, none
// longer than `max_bytes`, until one fails.
template <typename SomeBytes>
absl::Status InPieces(absl::Span<std::byte> buffer, size_t max_bytes,
                      const SomeBytes& some_bytes) {
  while (!buffer.empty()) {
    const size_t bytes = std::min(buffer.size(), max_bytes);
    HVDLITE_RETURN_IF_ERROR(some_bytes(buffer.first(bytes)));
    buffer.remove_prefix(bytes);
  }
  return absl::OkStatus();
}

// As MPI takes them, in elements of `element_bytes`.
std::vector<int> ToCounts(absl::Span<const size_t> bytes_of_rank,
                          size_t element_bytes = 1) {
  std::vector<int> counts;
  counts.reserve(bytes_of_rank.size());
  for (const size_t bytes : bytes_of_rank) {
    counts.push_back(static_cast<int>(bytes / element_bytes));
  }
  return counts;
}

}  // namespace

std::string MpiErrorText(int return_code) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(return_code, text, &length) != MPI_SUCCESS) {
    return absl::StrCat("MPI error ", return_code);
  }
  return std::string(text, length);
}

absl::Status MpiCallStatus(int return_code, absl::string_view call, int rank) {
  if (return_code == MPI_SUCCESS) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(call, " failed on rank ", rank,
                                             ": ", MpiErrorText(return_code)));
}

int MpiBarrier(MPI_Comm comm) {
  return Collective(MPI_Barrier, MPI_Ibarrier, comm);
}

absl::StatusOr<std::unique_ptr<MpiOperations>> MpiOperations::Create(int rank) {
  auto operations = absl::WrapUnique(new MpiOperations);
  for (const DataTypeTraits& type : kDataTypes) {
    const auto dtype = static_cast<size_t>(type.dtype);
    for (size_t op = 0; op < kNumReduceOps; ++op) {
      if (!NeedsOwnOperation(type, static_cast<ReduceOp>(op))) continue;
      HVDLITE_RETURN_IF_ERROR(
          MpiCallStatus(MPI_Op_create(kUserFunctions[dtype][op], /*commute=*/1,
                                      &operations->created_[dtype][op]),
                        "MPI_Op_create", rank));
    }
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

BoundedMpiCalls::BoundedMpiCalls(MPI_Comm comm, int64_t max_count,
                                 int name_of_rank)
    : comm_(comm),
      max_count_(static_cast<size_t>(max_count)),
      name_of_rank_(name_of_rank) {}

absl::Status BoundedMpiCalls::Check(int return_code,
                                    absl::string_view call) const {
  return MpiCallStatus(return_code, call, name_of_rank_);
}

absl::Status BoundedMpiCalls::Allreduce(
    absl::Span<std::byte> buffer, DataType dtype,
    MpiOperations::TypeAndOp operation) const {
  const size_t element_bytes = SizeOf(dtype);
  return InPieces(
      buffer, max_count_ * element_bytes, [&](absl::Span<std::byte> piece) {
        return Check(Collective(MPI_Allreduce, MPI_Iallreduce, MPI_IN_PLACE,
                                piece.data(),
                                static_cast<int>(piece.size() / element_bytes),
                                operation.type, operation.op, comm_),
                     "MPI_Allreduce");
      });
}

absl::Status BoundedMpiCalls::Broadcast(absl::Span<std::byte> buffer,
                                        int root) const {
  return InPieces(buffer, max_count_, [&](absl::Span<std::byte> piece) {
    return Check(
        Collective(MPI_Bcast, MPI_Ibcast, piece.data(),
                   static_cast<int>(piece.size()), MPI_BYTE, root, comm_),
        "MPI_Bcast");
  });
}

absl::Status BoundedMpiCalls::Allgather(
    absl::Span<std::byte> buffer,
    absl::Span<const size_t> bytes_of_rank) const {
  return Check(
      Collective(MPI_Allgatherv, MPI_Iallgatherv, MPI_IN_PLACE, 0,
                 MPI_DATATYPE_NULL, buffer.data(),
                 ToCounts(bytes_of_rank).data(),
                 ToCounts(PartOffsets(bytes_of_rank)).data(), MPI_BYTE, comm_),
      "MPI_Allgatherv");
}

absl::Status BoundedMpiCalls::ReduceScatter(
    absl::Span<std::byte> buffer, absl::Span<const size_t> bytes_of_rank,
    DataType dtype, MpiOperations::TypeAndOp operation) const {
  return Check(
      Collective(MPI_Reduce_scatter, MPI_Ireduce_scatter, MPI_IN_PLACE,
                 buffer.data(), ToCounts(bytes_of_rank, SizeOf(dtype)).data(),
                 operation.type, operation.op, comm_),
      "MPI_Reduce_scatter");
}

absl::Status BoundedMpiCalls::Alltoall(
    absl::Span<const std::byte> input, absl::Span<const size_t> input_bytes,
    absl::Span<std::byte> output, absl::Span<const size_t> output_bytes) const {
  return Check(
      Collective(MPI_Alltoallv, MPI_Ialltoallv, input.data(),
                 ToCounts(input_bytes).data(),
                 ToCounts(PartOffsets(input_bytes)).data(), MPI_BYTE,
                 output.data(), ToCounts(output_bytes).data(),
                 ToCounts(PartOffsets(output_bytes)).data(), MPI_BYTE, comm_),
      "MPI_Alltoallv");
}

absl::StatusOr<bool> BoundedMpiCalls::AllOf(bool mine) const {
  int all = mine;
  HVDLITE_RETURN_IF_ERROR(
      Check(Collective(MPI_Allreduce, MPI_Iallreduce, MPI_IN_PLACE, &all, 1,
                       MPI_INT, MPI_LAND, comm_),
            "MPI_Allreduce of one MPI_INT"));
  return all != 0;
}

}  // namespace hvdlite::collective
