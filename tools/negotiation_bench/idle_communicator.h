// IdleCommunicator: a data plane that moves nothing.
#pragma once

#include <memory>

#include "collective/communicator.h"

namespace hvdlite::negotiation_bench {

// Every operation succeeds at once and leaves its buffers as they are, so that
// what remains is the cost of submitting and negotiating. Ranks do not wait for
// one another in it.
class IdleCommunicator final : public collective::Communicator {
 public:
  IdleCommunicator(int rank, int size) : rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  absl::string_view name() const override { return "IDLE"; }

  absl::Status Allreduce(absl::Span<std::byte>, collective::DataType,
                         collective::ReduceOp) override {
    return absl::OkStatus();
  }
  absl::Status Broadcast(absl::Span<std::byte>, int) override {
    return absl::OkStatus();
  }
  absl::Status Allgather(absl::Span<std::byte>,
                         absl::Span<const size_t>) override {
    return absl::OkStatus();
  }
  absl::Status ReduceScatter(absl::Span<std::byte>, absl::Span<const size_t>,
                             collective::DataType,
                             collective::ReduceOp) override {
    return absl::OkStatus();
  }
  absl::Status Alltoall(absl::Span<const std::byte>, absl::Span<const size_t>,
                        absl::Span<std::byte>,
                        absl::Span<const size_t>) override {
    return absl::OkStatus();
  }
  absl::Status Exchange(int, absl::Span<const std::byte>,
                        absl::Span<std::byte>) override {
    return absl::OkStatus();
  }
  absl::Status Barrier() override {
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<collective::Communicator>> CreateSubgroup(
      absl::Span<const int>, int) override {
    return absl::UnimplementedError("process sets are not measured");
  }

 private:
  const int rank_;
  const int size_;
};

}  // namespace hvdlite::negotiation_bench
