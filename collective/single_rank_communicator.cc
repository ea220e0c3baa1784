// The communicator of a world of one rank: the data is already the result.
#include <cstring>
#include <memory>

#include "base/status_macros.h"
#include "collective/call_arguments.h"
#include "collective/communicator.h"

namespace hvdlite::collective {
namespace {

class SingleRankCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  absl::string_view name() const override { return "SINGLE"; }

  absl::Status Allreduce(absl::Span<std::byte> buffer, DataType dtype,
                         ReduceOp op) override {
    return CheckReductionArguments("allreduce", buffer, dtype, op);
  }

  absl::Status Broadcast(absl::Span<std::byte>, int root) override {
    return CheckBroadcastArguments(root, size());
  }

  absl::Status Allgather(absl::Span<std::byte> buffer,
                         absl::Span<const size_t> bytes_of_rank) override {
    return CheckParts("allgather", buffer.size(), bytes_of_rank, size());
  }

  absl::Status ReduceScatter(absl::Span<std::byte> buffer,
                             absl::Span<const size_t> bytes_of_rank,
                             DataType dtype, ReduceOp op) override {
    return CheckReduceScatterArguments(buffer, bytes_of_rank, dtype, op,
                                       size());
  }

  absl::Status Alltoall(absl::Span<const std::byte> input,
                        absl::Span<const size_t> input_bytes,
                        absl::Span<std::byte> output,
                        absl::Span<const size_t> output_bytes) override {
    HVDLITE_RETURN_IF_ERROR(CheckAlltoallArguments(input.size(), input_bytes,
                                                   output.size(), output_bytes,
                                                   rank(), size()));
    if (!input.empty()) {
      std::memcpy(output.data(), input.data(), input.size());
    }
    return absl::OkStatus();
  }

  absl::Status Exchange(int peer, absl::Span<const std::byte>,
                        absl::Span<std::byte>) override {
    return CheckExchangeArguments(peer, rank(), size());
  }

  absl::Status Barrier() override { return absl::OkStatus(); }

  absl::StatusOr<std::unique_ptr<Communicator>> CreateSubgroup(
      absl::Span<const int> members, int tag) override {
    HVDLITE_RETURN_IF_ERROR(
        CheckSubgroupArguments(members, tag, rank(), size()));
    return CreateSingleRankCommunicator();
  }
};

}  // namespace

std::unique_ptr<Communicator> CreateSingleRankCommunicator() {
  return std::make_unique<SingleRankCommunicator>();
}

}  // namespace hvdlite::collective
