// Communicators for tests to derive from: a test overrides what it needs.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "collective/communicator.h"

namespace hvdlite::testing {

// Rank 0 of 1, by default. Every operation returns Unimplemented.
class UnimplementedCommunicator : public collective::Communicator {
 public:
  explicit UnimplementedCommunicator(int rank = 0, int size = 1)
      : rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  absl::string_view name() const override { return "FAKE"; }

  absl::Status Allreduce(absl::Span<std::byte>, collective::DataType,
                         collective::ReduceOp) override {
    return absl::UnimplementedError("Allreduce");
  }
  absl::Status Broadcast(absl::Span<std::byte>, int) override {
    return absl::UnimplementedError("Broadcast");
  }
  absl::Status Allgather(absl::Span<std::byte>,
                         absl::Span<const size_t>) override {
    return absl::UnimplementedError("Allgather");
  }
  absl::Status ReduceScatter(absl::Span<std::byte>, absl::Span<const size_t>,
                             collective::DataType,
                             collective::ReduceOp) override {
    return absl::UnimplementedError("ReduceScatter");
  }
  absl::Status Alltoall(absl::Span<const std::byte>, absl::Span<const size_t>,
                        absl::Span<std::byte>,
                        absl::Span<const size_t>) override {
    return absl::UnimplementedError("Alltoall");
  }
  absl::Status Exchange(int, absl::Span<const std::byte>,
                        absl::Span<std::byte>) override {
    return absl::UnimplementedError("Exchange");
  }
  absl::Status Barrier() override {
    return absl::UnimplementedError("Barrier");
  }
  absl::StatusOr<std::unique_ptr<collective::Communicator>> CreateSubgroup(
      absl::Span<const int>, int) override {
    return absl::UnimplementedError("CreateSubgroup");
  }

 private:
  int rank_;
  int size_;
};

// Forwards every call to `base`.
class ForwardingCommunicator : public collective::Communicator {
 public:
  explicit ForwardingCommunicator(
      std::unique_ptr<collective::Communicator> base)
      : base_(std::move(base)) {}

  int rank() const override { return base_->rank(); }
  int size() const override { return base_->size(); }
  absl::string_view name() const override { return base_->name(); }

  absl::Status Allreduce(absl::Span<std::byte> buffer,
                         collective::DataType dtype,
                         collective::ReduceOp op) override {
    return base_->Allreduce(buffer, dtype, op);
  }
  absl::Status Broadcast(absl::Span<std::byte> buffer, int root) override {
    return base_->Broadcast(buffer, root);
  }
  absl::Status Allgather(absl::Span<std::byte> buffer,
                         absl::Span<const size_t> bytes_of_rank) override {
    return base_->Allgather(buffer, bytes_of_rank);
  }
  absl::Status ReduceScatter(absl::Span<std::byte> buffer,
                             absl::Span<const size_t> bytes_of_rank,
                             collective::DataType dtype,
                             collective::ReduceOp op) override {
    return base_->ReduceScatter(buffer, bytes_of_rank, dtype, op);
  }
  absl::Status Alltoall(absl::Span<const std::byte> input,
                        absl::Span<const size_t> input_bytes,
                        absl::Span<std::byte> output,
                        absl::Span<const size_t> output_bytes) override {
    return base_->Alltoall(input, input_bytes, output, output_bytes);
  }
  absl::Status Exchange(int peer, absl::Span<const std::byte> send,
                        absl::Span<std::byte> receive) override {
    return base_->Exchange(peer, send, receive);
  }
  absl::Status Barrier() override { return base_->Barrier(); }
  void MakeProgress() override { base_->MakeProgress(); }
  bool TakeCalls() override { return base_->TakeCalls(); }
  absl::StatusOr<std::unique_ptr<collective::Communicator>> CreateSubgroup(
      absl::Span<const int> members, int tag) override {
    return base_->CreateSubgroup(members, tag);
  }

 protected:
  collective::Communicator& base() { return *base_; }

 private:
  std::unique_ptr<collective::Communicator> base_;
};

}  // namespace hvdlite::testing
