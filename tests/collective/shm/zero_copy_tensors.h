// For tests: tensors in memory that all ranks of a node see.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "collective/communicator.h"
#include "collective/fusion/fusion.h"
#include "tests/collective/fusion/fused_cases.h"

namespace hvdlite::testing {

// Tensors of `counts` floats in memory of the communicator, with values that
// differ by rank and position.
struct ZeroCopyTensors {
  collective::TensorMemory memory;
  std::vector<absl::Span<float>> tensors;
  std::vector<collective::FusedTensor> fused;
};

inline ZeroCopyTensors MakeZeroCopyTensors(
    collective::Communicator& communicator, const std::vector<size_t>& counts) {
  size_t bytes = 0;
  for (const size_t count : counts) bytes += (4 * count + 63) / 64 * 64;
  auto memory = communicator.AllocateTensors(bytes);
  EXPECT_TRUE(memory.ok()) << memory.status();
  ZeroCopyTensors zero_copy{*memory, {}, {}};
  size_t at = 0;
  for (const size_t count : counts) {
    const auto span = memory->bytes.subspan(at, 4 * count);
    zero_copy.tensors.push_back(
        absl::MakeSpan(reinterpret_cast<float*>(span.data()), count));
    zero_copy.fused.push_back({span, span});
    at += (4 * count + 63) / 64 * 64;
  }
  return zero_copy;
}

inline void Fill(ZeroCopyTensors& zero_copy, int rank) {
  float value = static_cast<float>(rank);
  for (const absl::Span<float> tensor : zero_copy.tensors) {
    for (float& element : tensor) element = value += 1;
  }
}

// Number of elements that differ from the average of Fill(rank) over all ranks.
inline int CountWrong(const ZeroCopyTensors& zero_copy, int size) {
  int wrong = 0;
  float value = static_cast<float>(size - 1) / 2;
  for (const absl::Span<float> tensor : zero_copy.tensors) {
    for (const float element : tensor) wrong += element != (value += 1);
  }
  return wrong;
}

// How tensors were reduced.
struct Averaged {
  bool packs = false;
  std::string algorithm;
};

inline Averaged Average(collective::Communicator& communicator,
                        const std::vector<collective::FusedTensor>& tensors) {
  RankResources own(64);
  Averaged averaged;
  const absl::Status status = collective::FusedAllreduce(
      own.With(communicator), {.postscale = 1.0 / communicator.size()}, tensors,
      {.on_phase =
           [&](collective::FusionPhase phase, int64_t, int64_t, int64_t) {
             averaged.packs |= phase == collective::FusionPhase::kPack;
           },
       .on_algorithm =
           [&](absl::string_view name) {
             averaged.algorithm = std::string(name);
           }});
  EXPECT_TRUE(status.ok()) << status;
  return averaged;
}

// Fills the tensors and averages them.
inline Averaged CheckAverage(collective::Communicator& communicator,
                             ZeroCopyTensors& zero_copy) {
  Fill(zero_copy, communicator.rank());
  const Averaged averaged = Average(communicator, zero_copy.fused);
  EXPECT_EQ(CountWrong(zero_copy, communicator.size()), 0);
  return averaged;
}

inline const std::vector<size_t> kZeroCopyCounts = {1000, 1,  70000,
                                                    0,    33, 5000};

}  // namespace hvdlite::testing
