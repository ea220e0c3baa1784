// Parts that tests of fused collectives share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "collective/fusion/fusion.h"
#include "tests/testing/fakes/fake_communicator.h"

namespace hvdlite::testing {

using Bytes = std::vector<std::byte>;

// What a rank needs for its buckets, beside the communicator.
struct RankResources {
  explicit RankResources(size_t buffer_bytes) : buffer(buffer_bytes) {}

  collective::FusionResources With(collective::Communicator& communicator) {
    return {communicator, buffer, clock};
  }

  collective::FusionBuffer buffer;
  base::FakeClock clock;
};

inline collective::FusedTensor InPlace(Bytes& bytes) {
  return {bytes, absl::MakeSpan(bytes)};
}

// Hooks that record their arguments.
struct HookRecord {
  std::vector<std::pair<collective::FusionPhase, int64_t>> phases;
  std::vector<double> shares;  // completed fraction at each pause
  int num_pauses = 0;

  collective::FusionHooks Hooks() {
    return {.on_phase = [this](collective::FusionPhase phase, int64_t chunk,
                               int64_t,
                               int64_t) { phases.emplace_back(phase, chunk); },
            .on_progress = [this](double share) { shares.push_back(share); },
            .between_chunks =
                [this] {
                  ++num_pauses;
                  return absl::OkStatus();
                }};
  }
};

// [tensor][part]
using Sizes = std::vector<std::vector<size_t>>;

// Sizes for up to 8 tensors with `count` parts each. Some are zero, some much
// larger than others.
inline Sizes RandomSizes(uint32_t seed, size_t count) {
  std::mt19937 random(seed);
  Sizes sizes(random() % 9, std::vector<size_t>(count));
  for (std::vector<size_t>& parts : sizes) {
    const uint32_t largest = random() % 4 == 0 ? 3000 : 50;
    for (size_t& part : parts) {
      part = random() % 3 == 0 ? 0 : random() % largest;
    }
  }
  return sizes;
}

// Forwards calls and records the sizes of the parts.
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

  Sizes parts;  // of each call
  int num_allreduces = 0;
};

}  // namespace hvdlite::testing
