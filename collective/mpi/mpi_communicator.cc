#include "collective/mpi/mpi_communicator.h"

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstring>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "collective/call_arguments.h"
#include "collective/mpi/mpi_calls.h"
#include "collective/mpi/mpi_world.h"
#include "collective/ring/allreduce_queue.h"
#include "collective/ring/poll_pause.h"
#include "collective/ring/ring_collective.h"
#include "collective/ring/segmented_exchange.h"

namespace hvdlite::collective {
namespace {

// How Barrier() waits: looks that follow one another at once (others may
// have the core in between), then pauses that double from the first to the
// longest.
constexpr int kImmediateTests = 200;
constexpr absl::Duration kFirstPause = absl::Microseconds(20);
constexpr absl::Duration kLongestPause = absl::Milliseconds(1);

// Tags of messages; those of the queue follow.
constexpr int kExchangeTag = 1000;
constexpr int kRingTag = 1001;
constexpr int kFirstQueueTag = 1002;

// A probe that finds a message may leave it at that.
constexpr int kTagOfNoMessage = 1;

// Frees an MPI group at the end of a scope.
class ScopedGroup {
 public:
  ScopedGroup() = default;
  ~ScopedGroup() {
    if (group_ != MPI_GROUP_NULL) MPI_Group_free(&group_);
  }
  ScopedGroup(const ScopedGroup&) = delete;
  ScopedGroup& operator=(const ScopedGroup&) = delete;

  MPI_Group get() const { return group_; }
  MPI_Group* address() { return &group_; }

 private:
  MPI_Group group_ = MPI_GROUP_NULL;
};

class MpiCommunicator final : public Communicator {
 public:
  // Takes over `comm`, whose errors are returned. `world_rank` is for messages.
  MpiCommunicator(MpiCommunicatorOptions options, MPI_Comm comm, int rank,
                  std::vector<int> node_of_rank, int world_rank,
                  std::shared_ptr<const MpiOperations> operations,
                  std::shared_ptr<std::atomic<bool>> has_called)
      : options_(options),
        comm_(comm),
        rank_(rank),
        size_(static_cast<int>(node_of_rank.size())),
        node_of_rank_(std::move(node_of_rank)),
        sends_segments_(
            options.segments_within_nodes ||
            std::set(node_of_rank_.begin(), node_of_rank_.end()).size() ==
                node_of_rank_.size()),
        world_rank_(world_rank),
        operations_(std::move(operations)),
        has_called_(std::move(has_called)),
        calls_(comm, options.max_count_per_call, world_rank),
        messages_(CreateMpiMessages(comm, world_rank)),
        exchange_(*messages_, Segments()),
        ring_(*messages_, rank_, size_, Segments()),
        queue_(*messages_, rank_, size_, kFirstQueueTag, Segments()) {
    TrackMpiCommunicator(MPI_Comm_c2f(comm_));
  }

  ~MpiCommunicator() override {  // collective
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized) return;
    ForgetMpiCommunicator(MPI_Comm_c2f(comm_));
    MPI_Comm_free(&comm_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  absl::string_view name() const override { return "MPI"; }

  absl::Status Allreduce(absl::Span<std::byte> buffer, DataType dtype,
                         ReduceOp op) override {
    HVDLITE_RETURN_IF_ERROR(broken_);
    HVDLITE_RETURN_IF_ERROR(
        CheckReductionArguments("Allreduce", buffer, dtype, op));
    if (!IsLarge(buffer.size())) {
      return Latch(
          calls_.Allreduce(buffer, dtype, operations_->For(dtype, op)));
    }
    ring_.BeginAllreduce(kRingTag, buffer, dtype, op);
    return Latch(Run(ring_));
  }

  size_t allreduces_at_once(size_t bytes) const override {
    return IsLarge(bytes) ? AllreduceQueue::kAtOnce : 1;
  }

  absl::Status StartAllreduce(absl::Span<std::byte> buffer, DataType dtype,
                              ReduceOp op) override {
    HVDLITE_RETURN_IF_ERROR(broken_);
    HVDLITE_RETURN_IF_ERROR(
        CheckReductionArguments("Allreduce", buffer, dtype, op));
    has_called_->store(true);
    queue_.Begin(buffer, dtype, op);
    return absl::OkStatus();
  }

  absl::StatusOr<Headway> AdvanceAllreduces() override {
    HVDLITE_RETURN_IF_ERROR(broken_);
    absl::StatusOr<Headway> headway = queue_.Advance();
    HVDLITE_RETURN_IF_ERROR(Latch(headway.status()));
    return headway;
  }

  bool uses_memory() const override { return messages_->under_way() > 0; }

  void SetSpin(absl::Duration spin) override { spin_ = spin; }
  absl::Duration spin() const override { return spin_; }

  absl::Status Broadcast(absl::Span<std::byte> buffer, int root) override {
    HVDLITE_RETURN_IF_ERROR(broken_);
    HVDLITE_RETURN_IF_ERROR(CheckBroadcastArguments(root, size_));
    return Latch(calls_.Broadcast(buffer, root));
  }

  absl::Status Allgather(absl::Span<std::byte> buffer,
                         absl::Span<const size_t> bytes_of_rank) override {
    HVDLITE_RETURN_IF_ERROR(broken_);
    HVDLITE_RETURN_IF_ERROR(
        CheckParts("Allgather", buffer.size(), bytes_of_rank, size_));
    if (!IsLarge(buffer.size())) {
      return Latch(calls_.Allgather(buffer, bytes_of_rank));
    }
    ring_.BeginAllgather(kRingTag, buffer, bytes_of_rank);
    return Latch(Run(ring_));
  }

  absl::Status ReduceScatter(absl::Span<std::byte> buffer,
                             absl::Span<const size_t> bytes_of_rank,
                             DataType dtype, ReduceOp op) override {
    HVDLITE_RETURN_IF_ERROR(broken_);
    HVDLITE_RETURN_IF_ERROR(
        CheckReduceScatterArguments(buffer, bytes_of_rank, dtype, op, size_));
    if (!IsLarge(buffer.size())) {
      return Latch(calls_.ReduceScatter(buffer, bytes_of_rank, dtype,
                                        operations_->For(dtype, op)));
    }
    ring_.BeginReduceScatter(kRingTag, buffer, bytes_of_rank, dtype, op);
    HVDLITE_RETURN_IF_ERROR(Latch(Run(ring_)));
    const auto own = static_cast<size_t>(rank_);
    std::memmove(buffer.data(), buffer.data() + PartOffsets(bytes_of_rank)[own],
                 bytes_of_rank[own]);
    return absl::OkStatus();
  }

  absl::Status Alltoall(absl::Span<const std::byte> input,
                        absl::Span<const size_t> input_bytes,
                        absl::Span<std::byte> output,
                        absl::Span<const size_t> output_bytes) override {
    HVDLITE_RETURN_IF_ERROR(broken_);
    HVDLITE_RETURN_IF_ERROR(CheckAlltoallArguments(
        input.size(), input_bytes, output.size(), output_bytes, rank_, size_));
    // No rank knows the others' sizes.
    const auto small =
        calls_.AllOf(!IsLarge(input.size()) && !IsLarge(output.size()));
    HVDLITE_RETURN_IF_ERROR(Latch(small.status()));
    if (*small) {
      return Latch(calls_.Alltoall(input, input_bytes, output, output_bytes));
    }
    return Latch(ExchangeWithAll(input, input_bytes, output, output_bytes));
  }

  absl::Status Exchange(int peer, absl::Span<const std::byte> send,
                        absl::Span<std::byte> receive) override {
    HVDLITE_RETURN_IF_ERROR(broken_);
    HVDLITE_RETURN_IF_ERROR(CheckExchangeArguments(peer, rank_, size_));
    exchange_.Begin(kExchangeTag, peer, send, peer, receive);
    return Latch(Run(exchange_));
  }

  absl::Status Barrier() override {
    HVDLITE_RETURN_IF_ERROR(broken_);
    MPI_Request barrier = MPI_REQUEST_NULL;
    HVDLITE_RETURN_IF_ERROR(Latch(MpiCallStatus(MPI_Ibarrier(comm_, &barrier),
                                                "MPI_Ibarrier", world_rank_)));
    absl::Duration pause = kFirstPause;
    for (int tests = 1;; ++tests) {
      int done = 0;
      HVDLITE_RETURN_IF_ERROR(
          Latch(MpiCallStatus(MPI_Test(&barrier, &done, MPI_STATUS_IGNORE),
                              "MPI_Test of MPI_Ibarrier", world_rank_)));
      if (done) return absl::OkStatus();
      if (tests < kImmediateTests) {
        sched_yield();
      } else {
        absl::SleepFor(pause);
        pause = std::min(2 * pause, kLongestPause);
      }
    }
  }

  // Any call makes progress for all communicators.
  void MakeProgress() override {
    if (!broken_.ok()) return;
    int found = 0;  // an error is one of the next call, too
    MPI_Iprobe(MPI_ANY_SOURCE, kTagOfNoMessage, comm_, &found,
               MPI_STATUS_IGNORE);
  }
  bool TakeCalls() override { return has_called_->exchange(false); }

  absl::StatusOr<std::unique_ptr<Communicator>> CreateSubgroup(
      absl::Span<const int> members, int tag) override {
    HVDLITE_RETURN_IF_ERROR(broken_);
    HVDLITE_RETURN_IF_ERROR(CheckSubgroupArguments(members, tag, rank_, size_));
    MPI_Comm comm = MPI_COMM_NULL;
    HVDLITE_RETURN_IF_ERROR(Latch(CreateMpiSubgroup(members, tag, &comm)));
    const auto index = std::find(members.begin(), members.end(), rank_);
    std::vector<int> nodes;
    for (const int member : members) {
      nodes.push_back(node_of_rank_[static_cast<size_t>(member)]);
    }
    return std::make_unique<MpiCommunicator>(
        options_, comm, static_cast<int>(index - members.begin()),
        std::move(nodes), world_rank_, operations_, has_called_);
  }

 private:
  // Whether the messages are worth the latency of so many steps.
  bool IsLarge(size_t bytes) const {
    return size_ > 1 && sends_segments_ &&
           bytes >=
               std::max(options_.ring_from_bytes,
                        options_.segment_bytes * static_cast<size_t>(size_));
  }
  SegmentOptions Segments() const {
    // Elsewhere a message is better whole.
    return {.segment_bytes =
                sends_segments_ ? options_.segment_bytes : size_t{1} << 30};
  }

  // Carries `messages` on to their end.
  template <typename Messages>
  absl::Status Run(Messages& messages) const {
    for (PollPause pause(spin_);;) {
      HVDLITE_ASSIGN_OR_RETURN(const Headway headway, messages.Advance());
      if (headway == Headway::kDone) return absl::OkStatus();
      if (headway == Headway::kSome) {
        pause.Reset();
      } else {
        pause.Pause();
      }
    }
  }

  absl::Status ExchangeWithAll(absl::Span<const std::byte> input,
                               absl::Span<const size_t> input_bytes,
                               absl::Span<std::byte> output,
                               absl::Span<const size_t> output_bytes) {
    const std::vector<size_t> inputs = PartOffsets(input_bytes);
    const std::vector<size_t> outputs = PartOffsets(output_bytes);
    for (int distance = 0; distance < size_; ++distance) {
      const int to = (rank_ + distance) % size_;
      const int from = (rank_ - distance + size_) % size_;
      exchange_.Begin(kExchangeTag, to,
                      input.subspan(inputs[static_cast<size_t>(to)],
                                    input_bytes[static_cast<size_t>(to)]),
                      from,
                      output.subspan(outputs[static_cast<size_t>(from)],
                                     output_bytes[static_cast<size_t>(from)]));
      HVDLITE_RETURN_IF_ERROR(Run(exchange_));
    }
    return absl::OkStatus();
  }

  // Collective among the members.
  absl::Status CreateMpiSubgroup(absl::Span<const int> members, int tag,
                                 MPI_Comm* comm) const {
    ScopedGroup all;
    ScopedGroup some;
    HVDLITE_RETURN_IF_ERROR(MpiCallStatus(MPI_Comm_group(comm_, all.address()),
                                          "MPI_Comm_group", world_rank_));
    HVDLITE_RETURN_IF_ERROR(MpiCallStatus(
        MPI_Group_incl(all.get(), static_cast<int>(members.size()),
                       members.data(), some.address()),
        "MPI_Group_incl", world_rank_));
    HVDLITE_RETURN_IF_ERROR(
        MpiCallStatus(MPI_Comm_create_group(comm_, some.get(), tag, comm),
                      "MPI_Comm_create_group", world_rank_));
    return MpiCallStatus(MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN),
                         "MPI_Comm_set_errhandler", world_rank_);
  }

  // What a call of MPI has returned. The first error stays.
  absl::Status Latch(absl::Status status) {
    has_called_->store(true);
    if (status.ok()) return status;
    broken_ = status;
    RevokeMpiWorld();
    return status;
  }

  const MpiCommunicatorOptions options_;
  MPI_Comm comm_;
  const int rank_;
  const int size_;
  const std::vector<int> node_of_rank_;
  const bool sends_segments_;
  const int world_rank_;
  // Of all subgroups, too.
  const std::shared_ptr<const MpiOperations> operations_;
  const std::shared_ptr<std::atomic<bool>> has_called_;  // MPI
  const BoundedMpiCalls calls_;
  const std::unique_ptr<PointToPoint> messages_;
  SegmentedExchange exchange_;
  RingCollective ring_;
  AllreduceQueue queue_;
  absl::Duration spin_;
  absl::Status broken_;
};

// Collective: for each rank the lowest one that MPI shares memory with.
absl::StatusOr<std::vector<int>> NodesOfRanks(MPI_Comm comm, int rank,
                                              int size) {
  const auto check = [&](int return_code, absl::string_view call) {
    return MpiCallStatus(return_code, call, rank);
  };
  MPI_Comm node = MPI_COMM_NULL;
  HVDLITE_RETURN_IF_ERROR(check(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED,
                                                    rank, MPI_INFO_NULL, &node),
                                "MPI_Comm_split_type"));
  int lowest = rank;
  const absl::Status told =
      check(MPI_Bcast(&lowest, 1, MPI_INT, 0, node), "MPI_Bcast");
  MPI_Comm_free(&node);
  HVDLITE_RETURN_IF_ERROR(told);
  std::vector<int> nodes(static_cast<size_t>(size));
  HVDLITE_RETURN_IF_ERROR(
      check(MPI_Allgather(&lowest, 1, MPI_INT, nodes.data(), 1, MPI_INT, comm),
            "MPI_Allgather"));
  return nodes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> CreateMpiCommunicator(
    MpiCommunicatorOptions options) {
  if (options.max_count_per_call < 1 || options.max_count_per_call > INT_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_count_per_call is ", options.max_count_per_call,
                     "; it must be from 1 to ", INT_MAX));
  }
  if (options.segment_bytes == 0 || options.segment_bytes % 64 != 0 ||
      options.ring_from_bytes > size_t{1} << 30) {
    return absl::InvalidArgumentError(
        absl::StrCat("segment_bytes is ", options.segment_bytes,
                     " and ring_from_bytes ", options.ring_from_bytes,
                     "; they must be a multiple of 64, and at most 1 GiB"));
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
  HVDLITE_RETURN_IF_ERROR(
      MpiCallStatus(MPI_Comm_rank(MpiWorld(), &rank), "MPI_Comm_rank", rank));
  HVDLITE_RETURN_IF_ERROR(
      MpiCallStatus(MPI_Comm_size(MpiWorld(), &size), "MPI_Comm_size", rank));
  HVDLITE_ASSIGN_OR_RETURN(std::shared_ptr<const MpiOperations> operations,
                           MpiOperations::Create(rank));
  MPI_Comm comm = MPI_COMM_NULL;
  HVDLITE_RETURN_IF_ERROR(
      MpiCallStatus(MPI_Comm_dup(MpiWorld(), &comm), "MPI_Comm_dup", rank));
  HVDLITE_RETURN_IF_ERROR(
      MpiCallStatus(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN),
                    "MPI_Comm_set_errhandler", rank));
  HVDLITE_ASSIGN_OR_RETURN(std::vector<int> nodes,
                           NodesOfRanks(comm, rank, size));
  return std::make_unique<MpiCommunicator>(
      options, comm, rank, std::move(nodes),
      /*world_rank=*/rank, std::move(operations),
      std::make_shared<std::atomic<bool>>());
}

}  // namespace hvdlite::collective
