#include <cstring>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "collective/call_arguments.h"
#include "collective/communicator.h"
#include "collective/kernels/reduction_kernels.h"

namespace hvdlite::collective {
namespace {

class RankOrderCommunicator final : public Communicator {
 public:
  explicit RankOrderCommunicator(std::unique_ptr<Communicator> inner)
      : inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  absl::string_view name() const override { return inner_->name(); }

  absl::Status Allreduce(absl::Span<std::byte> buffer, DataType dtype,
                         ReduceOp op) override {
    HVDLITE_RETURN_IF_ERROR(
        CheckReductionArguments("Allreduce", buffer, dtype, op));
    if (!Rounds(dtype)) return inner_->Allreduce(buffer, dtype, op);
    const size_t element = SizeOf(dtype);
    std::vector<size_t> parts;
    for (const int64_t elements :
         EvenRows(static_cast<int64_t>(buffer.size() / element), size())) {
      parts.push_back(static_cast<size_t>(elements) * element);
    }
    const size_t own_begin = PartOffsets(parts)[static_cast<size_t>(rank())];
    HVDLITE_RETURN_IF_ERROR(
        ReduceOwnPart(buffer, parts, dtype, op, buffer.subspan(own_begin)));
    return inner_->Allgather(buffer, parts);
  }

  absl::Status ReduceScatter(absl::Span<std::byte> buffer,
                             absl::Span<const size_t> bytes_of_rank,
                             DataType dtype, ReduceOp op) override {
    HVDLITE_RETURN_IF_ERROR(CheckReduceScatterArguments(
        buffer, bytes_of_rank, dtype, op, inner_->size()));
    if (!Rounds(dtype)) {
      return inner_->ReduceScatter(buffer, bytes_of_rank, dtype, op);
    }
    return ReduceOwnPart(buffer, bytes_of_rank, dtype, op, buffer);
  }

  absl::Status Broadcast(absl::Span<std::byte> buffer, int root) override {
    return inner_->Broadcast(buffer, root);
  }
  absl::Status Allgather(absl::Span<std::byte> buffer,
                         absl::Span<const size_t> bytes_of_rank) override {
    return inner_->Allgather(buffer, bytes_of_rank);
  }
  absl::Status Alltoall(absl::Span<const std::byte> input,
                        absl::Span<const size_t> input_bytes,
                        absl::Span<std::byte> output,
                        absl::Span<const size_t> output_bytes) override {
    return inner_->Alltoall(input, input_bytes, output, output_bytes);
  }
  absl::Status Exchange(int peer, absl::Span<const std::byte> send,
                        absl::Span<std::byte> receive) override {
    return inner_->Exchange(peer, send, receive);
  }
  bool uses_memory() const override { return inner_->uses_memory(); }
  absl::Status Barrier() override { return inner_->Barrier(); }
  void SetSpin(absl::Duration spin) override { inner_->SetSpin(spin); }
  void MakeProgress() override { inner_->MakeProgress(); }
  bool TakeCalls() override { return inner_->TakeCalls(); }

  absl::StatusOr<std::unique_ptr<Communicator>> CreateSubgroup(
      absl::Span<const int> members, int tag) override {
    HVDLITE_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> subgroup,
                             inner_->CreateSubgroup(members, tag));
    return CreateRankOrderCommunicator(std::move(subgroup));
  }

 private:
  // Collects this rank's part of `buffer` from all ranks, and puts its
  // reduction at the beginning of `result`.
  absl::Status ReduceOwnPart(absl::Span<std::byte> buffer,
                             absl::Span<const size_t> parts, DataType dtype,
                             ReduceOp op, absl::Span<std::byte> result) {
    const size_t own_bytes = parts[static_cast<size_t>(rank())];
    const std::vector<size_t> received_bytes(parts.size(), own_bytes);
    const size_t bytes = own_bytes * parts.size();
    if (received_.size() < bytes) received_.resize(bytes);
    HVDLITE_RETURN_IF_ERROR(
        inner_->Alltoall(buffer, parts, absl::MakeSpan(received_).first(bytes),
                         received_bytes));
    if (own_bytes == 0) return absl::OkStatus();
    std::vector<const std::byte*> inputs;
    for (size_t other = 0; other < parts.size(); ++other) {
      inputs.push_back(received_.data() + other * own_bytes);
    }
    std::byte* const output = result.data();
    ReduceAll(op, dtype, 1, inputs, absl::MakeConstSpan(&output, 1), own_bytes);
    return absl::OkStatus();
  }

  const std::unique_ptr<Communicator> inner_;
  std::vector<std::byte> received_;  // kept for the next call; may grow
};

}  // namespace

std::unique_ptr<Communicator> CreateRankOrderCommunicator(
    std::unique_ptr<Communicator> inner) {
  return std::make_unique<RankOrderCommunicator>(std::move(inner));
}

}  // namespace hvdlite::collective
