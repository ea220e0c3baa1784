#include "collective/mpi/mpi_communicator.h"

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "collective/call_arguments.h"
#include "collective/mpi/mpi_operations.h"
#include "collective/mpi/mpi_status.h"

namespace hvdlite::collective {
namespace {

// How Barrier() waits: looks that follow one another at once (others may have
// the core in between), then pauses that double from the first to the longest.
constexpr int kImmediateTests = 200;
constexpr absl::Duration kFirstPause = absl::Microseconds(20);
constexpr absl::Duration kLongestPause = absl::Milliseconds(1);

class MpiCommunicator final : public Communicator {
 public:
  // Takes over `comm`, a duplicate with MPI_ERRORS_RETURN.
  MpiCommunicator(MpiCommunicatorOptions options, MPI_Comm comm, int rank,
                  int size, std::unique_ptr<MpiOperations> operations)
      : options_(options),
        comm_(comm),
        rank_(rank),
        size_(size),
        operations_(std::move(operations)) {}

  // Collective. Leaves the MPI communicator alone while a barrier that met its
  // deadline is still under way: freeing it might wait for the missing ranks.
  ~MpiCommunicator() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized) return;
    int done = 1;
    if (barrier_ != MPI_REQUEST_NULL) {
      MPI_Test(&barrier_, &done, MPI_STATUS_IGNORE);
    }
    if (done) MPI_Comm_free(&comm_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  absl::string_view name() const override { return "MPI"; }

  absl::Status Allreduce(absl::Span<std::byte> buffer, DataType dtype,
                         ReduceOp op) override {
    HVDLITE_RETURN_IF_ERROR(broken_);
    HVDLITE_RETURN_IF_ERROR(CheckAllreduceArguments(buffer, dtype, op));
    const auto [mpi_type, mpi_op] = operations_->For(dtype, op);
    return InBoundedCalls("MPI_Allreduce", buffer, SizeOf(dtype),
                          [&](void* data, int count) {
                            return MPI_Allreduce(MPI_IN_PLACE, data, count,
                                                 mpi_type, mpi_op, comm_);
                          });
  }

  absl::Status Broadcast(absl::Span<std::byte> buffer, int root) override {
    HVDLITE_RETURN_IF_ERROR(broken_);
    HVDLITE_RETURN_IF_ERROR(CheckBroadcastArguments(root, size_));
    return InBoundedCalls(
        "MPI_Bcast", buffer, /*element_bytes=*/1, [&](void* data, int count) {
          return MPI_Bcast(data, count, MPI_BYTE, root, comm_);
        });
  }

  absl::Status Barrier() override {
    HVDLITE_RETURN_IF_ERROR(broken_);
    HVDLITE_RETURN_IF_ERROR(Latch(
        MpiCallStatus(MPI_Ibarrier(comm_, &barrier_), "MPI_Ibarrier", rank_)));
    const base::SteadyClock clock;
    const int64_t start_ns = clock.NowNanos();
    absl::Duration pause = kFirstPause;
    for (int64_t tests = 1;; ++tests) {
      int done = 0;
      HVDLITE_RETURN_IF_ERROR(
          Latch(MpiCallStatus(MPI_Test(&barrier_, &done, MPI_STATUS_IGNORE),
                              "MPI_Test of MPI_Ibarrier", rank_)));
      if (done) return absl::OkStatus();
      const absl::Duration left =
          options_.deadline - absl::Nanoseconds(clock.NowNanos() - start_ns);
      if (left <= absl::ZeroDuration()) return MissedDeadline();
      if (tests < kImmediateTests) {
        sched_yield();
      } else {
        absl::SleepFor(std::min(pause, left));
        pause = std::min(2 * pause, kLongestPause);
      }
    }
  }

 private:
  // Calls mpi_call(first element, count) for one run of elements after the
  // other, none longer than max_count_per_call.
  template <typename MpiCall>
  absl::Status InBoundedCalls(absl::string_view call_name,
                              absl::Span<std::byte> buffer,
                              size_t element_bytes, const MpiCall& mpi_call) {
    const size_t max_bytes =
        static_cast<size_t>(options_.max_count_per_call) * element_bytes;
    while (!buffer.empty()) {
      const size_t bytes = std::min(buffer.size(), max_bytes);
      const int count = static_cast<int>(bytes / element_bytes);
      HVDLITE_RETURN_IF_ERROR(Latch(
          MpiCallStatus(mpi_call(buffer.data(), count), call_name, rank_)));
      buffer.remove_prefix(bytes);
    }
    return absl::OkStatus();
  }

  absl::Status MissedDeadline() {
    return Latch(absl::DeadlineExceededError(absl::StrCat(
        "Barrier: of ", size_, " ranks, some did not arrive within ",
        absl::FormatDuration(options_.deadline), " (noticed by rank ", rank_,
        "; MPI does not tell which are missing)")));
  }

  // The first error stays.
  absl::Status Latch(absl::Status status) {
    if (!status.ok()) broken_ = status;
    return status;
  }

  const MpiCommunicatorOptions options_;
  MPI_Comm comm_;
  const int rank_;
  const int size_;
  const std::unique_ptr<MpiOperations> operations_;
  MPI_Request barrier_ = MPI_REQUEST_NULL;  // not null after a missed deadline
  absl::Status broken_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> CreateMpiCommunicator(
    MpiCommunicatorOptions options) {
  if (options.max_count_per_call < 1 || options.max_count_per_call > INT_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_count_per_call is ", options.max_count_per_call,
                     "; it must be from 1 to ", INT_MAX));
  }
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (!initialized || finalized) {
    return absl::FailedPreconditionError(absl::StrCat(
        "an MPI communicator needs MPI, which ",
        finalized ? "has been finalized" : "has not been initialised"));
  }
  int rank = 0;
  int size = 0;
  HVDLITE_RETURN_IF_ERROR(MpiCallStatus(MPI_Comm_rank(MPI_COMM_WORLD, &rank),
                                        "MPI_Comm_rank", rank));
  HVDLITE_RETURN_IF_ERROR(MpiCallStatus(MPI_Comm_size(MPI_COMM_WORLD, &size),
                                        "MPI_Comm_size", rank));
  HVDLITE_ASSIGN_OR_RETURN(std::unique_ptr<MpiOperations> operations,
                           MpiOperations::Create(rank));
  MPI_Comm comm = MPI_COMM_NULL;
  HVDLITE_RETURN_IF_ERROR(
      MpiCallStatus(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup", rank));
  HVDLITE_RETURN_IF_ERROR(
      MpiCallStatus(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN),
                    "MPI_Comm_set_errhandler", rank));
  return std::make_unique<MpiCommunicator>(options, comm, rank, size,
                                           std::move(operations));
}

}  // namespace hvdlite::collective
