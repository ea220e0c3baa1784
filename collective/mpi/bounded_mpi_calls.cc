#include "collective/mpi/bounded_mpi_calls.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collective/communicator.h"
#include "collective/mpi/mpi_status.h"

namespace hvdlite::collective {
namespace {

constexpr int kTag = 0;  // of all messages between two ranks

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
        return Check(
            MPI_Allreduce(MPI_IN_PLACE, piece.data(),
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
        return Check(MPI_Reduce(is_root ? MPI_IN_PLACE : piece.data(),
                                is_root ? piece.data() : nullptr,
                                static_cast<int>(piece.size() / element_bytes),
                                operation.type, operation.op, root, comm_),
                     "MPI_Reduce");
      });
}

absl::Status BoundedMpiCalls::Broadcast(absl::Span<std::byte> buffer,
                                        int root) const {
  return InPieces(buffer, max_count_, [&](absl::Span<std::byte> piece) {
    return Check(MPI_Bcast(piece.data(), static_cast<int>(piece.size()),
                           MPI_BYTE, root, comm_),
                 "MPI_Bcast");
  });
}

absl::Status BoundedMpiCalls::Allgather(
    absl::Span<std::byte> buffer,
    absl::Span<const size_t> bytes_of_rank) const {
  if (buffer.empty()) return absl::OkStatus();
  const std::vector<size_t> offsets = PartOffsets(bytes_of_rank);
  if (buffer.size() <= max_count_) {
    return Check(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL,
                                buffer.data(), ToCounts(bytes_of_rank).data(),
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
        MPI_Reduce_scatter(MPI_IN_PLACE, buffer.data(),
                           ToCounts(bytes_of_rank, element_bytes).data(),
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
      Check(MPI_Allreduce(MPI_IN_PLACE, &fits, 1, MPI_INT, MPI_LAND, comm_),
            "MPI_Allreduce of MPI_Alltoallv's sizes"));
  if (fits) {
    return Check(
        MPI_Alltoallv(input.data(), ToCounts(input_bytes).data(),
                      ToCounts(input_offsets).data(), MPI_BYTE, output.data(),
                      ToCounts(output_bytes).data(),
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
    MPI_Status mpi_status;
    HVDLITE_RETURN_IF_ERROR(
        Check(MPI_Sendrecv(send.data(), static_cast<int>(to_send), MPI_BYTE,
                           to_send > 0 ? to : MPI_PROC_NULL, kTag,
                           receive.data(), static_cast<int>(to_receive),
                           MPI_BYTE, to_receive > 0 ? from : MPI_PROC_NULL,
                           kTag, comm_, &mpi_status),
              "MPI_Sendrecv"));
    int received = 0;
    HVDLITE_RETURN_IF_ERROR(Check(
        MPI_Get_count(&mpi_status, MPI_BYTE, &received), "MPI_Get_count"));
    if (static_cast<size_t>(received) != to_receive) {
      return absl::UnavailableError(absl::StrCat(
          "MPI_Sendrecv on rank ", name_of_rank_, " received ", received,
          " bytes where ", to_receive, " were expected"));
    }
    send.remove_prefix(to_send);
    receive.remove_prefix(to_receive);
  }
  return absl::OkStatus();
}

}  // namespace hvdlite::collective
