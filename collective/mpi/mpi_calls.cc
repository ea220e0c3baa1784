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

constexpr int kTag = 0;  // of all messages between two ranks

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
      name_of_rank_(name_of_rank) {
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size_);
}

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

absl::Status BoundedMpiCalls::Reduce(absl::Span<std::byte> buffer, int root,
                                     DataType dtype,
                                     MpiOperations::TypeAndOp operation) const {
  const size_t element_bytes = SizeOf(dtype);
  const bool is_root = rank_ == root;
  return InPieces(
      buffer, max_count_ * element_bytes, [&](absl::Span<std::byte> piece) {
        return Check(Collective(MPI_Reduce, MPI_Ireduce,
                                is_root ? MPI_IN_PLACE : piece.data(),
                                is_root ? piece.data() : nullptr,
                                static_cast<int>(piece.size() / element_bytes),
                                operation.type, operation.op, root, comm_),
                     "MPI_Reduce");
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
  if (buffer.empty()) return absl::OkStatus();
  const std::vector<size_t> offsets = PartOffsets(bytes_of_rank);
  if (buffer.size() <= max_count_) {
    return Check(Collective(MPI_Allgatherv, MPI_Iallgatherv, MPI_IN_PLACE, 0,
                            MPI_DATATYPE_NULL, buffer.data(),
                            ToCounts(bytes_of_rank).data(),
                            ToCounts(offsets).data(), MPI_BYTE, comm_),
                 "MPI_Allgatherv");
  }
  for (int root = 0; root < size_; ++root) {
    HVDLITE_RETURN_IF_ERROR(
        Broadcast(buffer.subspan(offsets[root], bytes_of_rank[root]), root));
  }
  return absl::OkStatus();
}

absl::Status BoundedMpiCalls::ReduceScatter(
    absl::Span<std::byte> buffer, absl::Span<const size_t> bytes_of_rank,
    DataType dtype, MpiOperations::TypeAndOp operation) const {
  if (buffer.empty()) return absl::OkStatus();
  const size_t element_bytes = SizeOf(dtype);
  if (buffer.size() / element_bytes <= max_count_) {
    return Check(
        Collective(MPI_Reduce_scatter, MPI_Ireduce_scatter, MPI_IN_PLACE,
                   buffer.data(), ToCounts(bytes_of_rank, element_bytes).data(),
                   operation.type, operation.op, comm_),
        "MPI_Reduce_scatter");
  }
  const std::vector<size_t> offsets = PartOffsets(bytes_of_rank);
  for (int root = 0; root < size_; ++root) {
    HVDLITE_RETURN_IF_ERROR(
        Reduce(buffer.subspan(offsets[root], bytes_of_rank[root]), root, dtype,
               operation));
  }
  std::memmove(buffer.data(), buffer.data() + offsets[rank_],
               bytes_of_rank[rank_]);
  return absl::OkStatus();
}

absl::Status BoundedMpiCalls::Alltoall(
    absl::Span<const std::byte> input, absl::Span<const size_t> input_bytes,
    absl::Span<std::byte> output, absl::Span<const size_t> output_bytes) const {
  const std::vector<size_t> input_offsets = PartOffsets(input_bytes);
  const std::vector<size_t> output_offsets = PartOffsets(output_bytes);
  // All ranks must take the same way, but none knows the others' sizes.
  int fits = input.size() <= max_count_ && output.size() <= max_count_;
  HVDLITE_RETURN_IF_ERROR(
      Check(Collective(MPI_Allreduce, MPI_Iallreduce, MPI_IN_PLACE, &fits, 1,
                       MPI_INT, MPI_LAND, comm_),
            "MPI_Allreduce of MPI_Alltoallv's sizes"));
  if (fits) {
    return Check(
        Collective(MPI_Alltoallv, MPI_Ialltoallv, input.data(),
                   ToCounts(input_bytes).data(), ToCounts(input_offsets).data(),
                   MPI_BYTE, output.data(), ToCounts(output_bytes).data(),
                   ToCounts(output_offsets).data(), MPI_BYTE, comm_),
        "MPI_Alltoallv");
  }
  for (int distance = 0; distance < size_; ++distance) {
    const int to = (rank_ + distance) % size_;
    const int from = (rank_ - distance + size_) % size_;
    HVDLITE_RETURN_IF_ERROR(SendAndReceive(
        to, input.subspan(input_offsets[to], input_bytes[to]), from,
        output.subspan(output_offsets[from], output_bytes[from])));
  }
  return absl::OkStatus();
}

absl::Status BoundedMpiCalls::SendAndReceive(
    int to, absl::Span<const std::byte> send, int from,
    absl::Span<std::byte> receive) const {
  // The n-th piece that one rank sends is the n-th that the other receives.
  while (!send.empty() || !receive.empty()) {
    const size_t to_send = std::min(send.size(), max_count_);
    const size_t to_receive = std::min(receive.size(), max_count_);
    MPI_Request receiving = MPI_REQUEST_NULL;
    MPI_Request sending = MPI_REQUEST_NULL;
    MPI_Status mpi_status;
    HVDLITE_RETURN_IF_ERROR(
        Check(MPI_Irecv(receive.data(), static_cast<int>(to_receive), MPI_BYTE,
                        to_receive > 0 ? from : MPI_PROC_NULL, kTag, comm_,
                        &receiving),
              "MPI_Irecv"));
    HVDLITE_RETURN_IF_ERROR(Check(
        MPI_Isend(send.data(), static_cast<int>(to_send), MPI_BYTE,
                  to_send > 0 ? to : MPI_PROC_NULL, kTag, comm_, &sending),
        "MPI_Isend"));
    HVDLITE_RETURN_IF_ERROR(Check(Await(&receiving, &mpi_status), "MPI_Irecv"));
    HVDLITE_RETURN_IF_ERROR(Check(Await(&sending), "MPI_Isend"));
    int received = 0;
    HVDLITE_RETURN_IF_ERROR(Check(
        MPI_Get_count(&mpi_status, MPI_BYTE, &received), "MPI_Get_count"));
    if (static_cast<size_t>(received) != to_receive) {
      return absl::UnavailableError(absl::StrCat(
          "MPI_Irecv on rank ", name_of_rank_, " received ", received,
          " bytes where ", to_receive, " were expected"));
    }
    send.remove_prefix(to_send);
    receive.remove_prefix(to_receive);
  }
  return absl::OkStatus();
}

}  // namespace hvdlite::collective
