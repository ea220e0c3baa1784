// Batches of partitioned tensors for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "collective/kernels/data_type.h"
#include "tests/testing/fakes/fake_communicator.h"

namespace hvdlite::testing {

using Bytes = std::vector<std::byte>;

// What rank `from` has for rank `to`; differs by all arguments.
inline Bytes PieceBytes(size_t tensor, int from, int to, size_t size) {
  std::mt19937 random(static_cast<uint32_t>(tensor * 10007 + from * 101 + to));
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0xff);
  return bytes;
}

inline void Append(Bytes& bytes, const Bytes& more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

// Sizes of up to 8 tensors' parts: [tensor][index], each `count` of them. Some
// are zero, some much larger than others.
inline std::vector<std::vector<size_t>> RandomSizes(uint32_t seed,
                                                    size_t count) {
  std::mt19937 random(seed);
  std::vector<std::vector<size_t>> sizes(random() % 9,
                                         std::vector<size_t>(count));
  for (std::vector<size_t>& parts : sizes) {
    const uint32_t largest = random() % 4 == 0 ? 3000 : 50;
    for (size_t& bytes : parts) {
      bytes = random() % 3 == 0 ? 0 : random() % largest;
    }
  }
  return sizes;
}

// Passes calls on and keeps the sizes of the parts it was given.
class PartRecorder final : public ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;

  absl::Status Allreduce(absl::Span<std::byte> buffer,
                         collective::DataType dtype,
                         collective::ReduceOp op) override {
    ++num_allreduces;
    return ForwardingCommunicator::Allreduce(buffer, dtype, op);
  }
  absl::Status Allgather(absl::Span<std::byte> buffer,
                         absl::Span<const size_t> bytes_of_rank) override {
    parts.emplace_back(bytes_of_rank.begin(), bytes_of_rank.end());
    return ForwardingCommunicator::Allgather(buffer, bytes_of_rank);
  }
  absl::Status ReduceScatter(absl::Span<std::byte> buffer,
                             absl::Span<const size_t> bytes_of_rank,
                             collective::DataType dtype,
                             collective::ReduceOp op) override {
    parts.emplace_back(bytes_of_rank.begin(), bytes_of_rank.end());
    return ForwardingCommunicator::ReduceScatter(buffer, bytes_of_rank, dtype,
                                                 op);
  }
  absl::Status Alltoall(absl::Span<const std::byte> input,
                        absl::Span<const size_t> input_bytes,
                        absl::Span<std::byte> output,
                        absl::Span<const size_t> output_bytes) override {
    parts.emplace_back(input_bytes.begin(), input_bytes.end());
    return ForwardingCommunicator::Alltoall(input, input_bytes, output,
                                            output_bytes);
  }

  std::vector<std::vector<size_t>> parts;  // of each call, by rank
  int num_allreduces = 0;
};

}  // namespace hvdlite::testing
