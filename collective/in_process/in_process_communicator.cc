#include "collective/in_process/in_process_communicator.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/status_macros.h"
#include "collective/call_arguments.h"
#include "collective/in_process/call.h"
#include "collective/in_process/world.h"

namespace hvdlite::collective {
namespace {

class InProcessCommunicator final : public Communicator {
 public:
  InProcessCommunicator(int rank, std::shared_ptr<World> world)
      : rank_(rank), world_(std::move(world)) {}
  ~InProcessCommunicator() override { world_->Leave(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return world_->size(); }
  absl::string_view name() const override { return "IN_PROCESS"; }

  absl::Status Allreduce(absl::Span<std::byte> buffer, DataType dtype,
                         ReduceOp op) override {
    return world_->Meet(rank_, {.kind = Call::Kind::kAllreduce,
                                .members = world_->all_ranks(),
                                .buffer = buffer,
                                .dtype = dtype,
                                .op = op});
  }

  absl::Status Broadcast(absl::Span<std::byte> buffer, int root) override {
    return world_->Meet(rank_, {.kind = Call::Kind::kBroadcast,
                                .members = world_->all_ranks(),
                                .buffer = buffer,
                                .root = root});
  }

  absl::Status Allgather(absl::Span<std::byte> buffer,
                         absl::Span<const size_t> bytes_of_rank) override {
    return world_->Meet(rank_, {.kind = Call::Kind::kAllgather,
                                .members = world_->all_ranks(),
                                .buffer = buffer,
                                .bytes_of_rank = bytes_of_rank});
  }

  absl::Status ReduceScatter(absl::Span<std::byte> buffer,
                             absl::Span<const size_t> bytes_of_rank,
                             DataType dtype, ReduceOp op) override {
    return world_->Meet(rank_, {.kind = Call::Kind::kReduceScatter,
                                .members = world_->all_ranks(),
                                .buffer = buffer,
                                .bytes_of_rank = bytes_of_rank,
                                .dtype = dtype,
                                .op = op});
  }

  absl::Status Alltoall(absl::Span<const std::byte> input,
                        absl::Span<const size_t> input_bytes,
                        absl::Span<std::byte> output,
                        absl::Span<const size_t> output_bytes) override {
    return world_->Meet(rank_, {.kind = Call::Kind::kAlltoall,
                                .members = world_->all_ranks(),
                                .buffer = output,
                                .bytes_of_rank = output_bytes,
                                .input = input,
                                .input_bytes = input_bytes});
  }

  absl::Status Exchange(int peer, absl::Span<const std::byte> send,
                        absl::Span<std::byte> receive) override {
    HVDLITE_RETURN_IF_ERROR(CheckExchangeArguments(peer, rank_, size()));
    const int members[] = {std::min(rank_, peer), std::max(rank_, peer)};
    size_t input_bytes[] = {0, 0};
    size_t output_bytes[] = {0, 0};
    const int index_of_peer = peer < rank_ ? 0 : 1;
    input_bytes[index_of_peer] = send.size();
    output_bytes[index_of_peer] = receive.size();
    return world_->Meet(rank_, {.kind = Call::Kind::kExchange,
                                .members = members,
                                .buffer = receive,
                                .bytes_of_rank = output_bytes,
                                .input = send,
                                .input_bytes = input_bytes});
  }

  absl::Status Barrier() override {
    return world_->Meet(
        rank_, {.kind = Call::Kind::kBarrier, .members = world_->all_ranks()});
  }

  absl::StatusOr<std::unique_ptr<Communicator>> CreateSubgroup(
      absl::Span<const int> members, int tag) override {
    HVDLITE_RETURN_IF_ERROR(
        CheckSubgroupArguments(members, tag, rank_, size()));
    std::shared_ptr<World> subgroup;
    HVDLITE_RETURN_IF_ERROR(
        world_->Meet(rank_, {.kind = Call::Kind::kCreateSubgroup,
                             .members = members,
                             .tag = tag,
                             .subgroup = &subgroup}));
    const auto index = std::find(members.begin(), members.end(), rank_);
    return std::make_unique<InProcessCommunicator>(
        static_cast<int>(index - members.begin()), std::move(subgroup));
  }

 private:
  const int rank_;
  const std::shared_ptr<World> world_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> CreateInProcessWorld(
    int size, InProcessOptions options) {
  std::vector<int> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  const auto world = std::make_shared<World>(std::move(ranks),
                                             /*is_subgroup=*/false, options);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < size; ++rank) {
    communicators.push_back(
        std::make_unique<InProcessCommunicator>(rank, world));
  }
  return communicators;
}

}  // namespace hvdlite::collective
