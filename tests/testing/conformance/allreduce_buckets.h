// Random buckets for an allreduce of many tensors, and the expected results.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "base/clock.h"
#include "collective/fusion/fusion.h"
#include "tests/testing/conformance/element_values.h"
#include "tests/testing/conformance/reduction_reference.h"

namespace hvdlite::testing {

// What every rank knows about a bucket.
struct AllreduceBucket {
  collective::Reduction reduction;
  std::vector<size_t> counts;       // elements, by tensor
  std::vector<bool> in_place;       // by tensor
  std::vector<int> absent_on_rank;  // by tensor; -1: nowhere

  bool IsAbsent(size_t tensor, int rank) const {
    return absent_on_rank[tensor] == rank;
  }
  // The values of a rank for a tensor; they differ by tensor and rank.
  std::vector<double> Values(size_t tensor, int rank) const {
    return Contribution(reduction.dtype, reduction.op,
                        rank + static_cast<int>(tensor % 2), counts[tensor]);
  }
};

inline AllreduceBucket RandomAllreduceBucket(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](int end) { return static_cast<int>(random() % end); };
  AllreduceBucket bucket;
  collective::Reduction& reduction = bucket.reduction;
  reduction.dtype = static_cast<DataType>(below(collective::kNumDataTypes));
  reduction.op = OpOrSum(
      reduction.dtype, static_cast<ReduceOp>(below(collective::kNumReduceOps)));
  if (reduction.op == ReduceOp::kSum && below(2) == 0) {
    reduction.prescale = below(2) == 0 ? 0.5 : 2;
    reduction.postscale = below(2) == 0 ? 0.25 : 2;
    reduction.divisor = below(2) == 0 ? 1 : 4;
  }
  if (below(2) == 0) {  // the values are exact in any float type
    reduction.compression = static_cast<collective::Compression>(
        below(collective::kNumCompressions));
  }
  const int num_tensors = 1 + below(12);
  for (int i = 0; i < num_tensors; ++i) {
    bucket.counts.push_back(below(5) == 0 ? below(3000) : below(40));
    bucket.in_place.push_back(below(2) == 0);
    bucket.absent_on_rank.push_back(below(5) - 2);  // -2 and -1: nowhere
  }
  return bucket;
}

inline double NeutralReference(DataType dtype, ReduceOp op) {
  if (op == ReduceOp::kProduct) return 1;
  if (op == ReduceOp::kSum) return 0;
  if (dtype == DataType::kBool) return op == ReduceOp::kMin;
  // This is beyond all values that occur: a rank without input contributes it.
  return op == ReduceOp::kMin ? 1000 : -1000;
}

inline std::vector<std::byte> ExpectedTensor(const AllreduceBucket& bucket,
                                             size_t tensor, int size) {
  const collective::Reduction& reduction = bucket.reduction;
  std::vector<std::vector<double>> contributions;
  for (int rank = 0; rank < size; ++rank) {
    std::vector<double> values = bucket.Values(tensor, rank);
    if (bucket.IsAbsent(tensor, rank)) {
      if (size > 1) continue;
      absl::c_fill(values, NeutralReference(reduction.dtype, reduction.op));
    }
    contributions.push_back(std::move(values));
  }
  return Encode(reduction.dtype, Reduced(reduction, std::move(contributions)));
}

// Runs the bucket on one rank and checks every tensor.
inline void CheckAllreduceBucket(collective::Communicator& communicator,
                                 collective::FusionBuffer& buffer,
                                 const AllreduceBucket& bucket) {
  std::vector<std::vector<std::byte>> inputs;
  std::vector<std::vector<std::byte>> outputs;
  std::vector<collective::FusedTensor> tensors;
  for (size_t i = 0; i < bucket.counts.size(); ++i) {
    inputs.push_back(
        Encode(bucket.reduction.dtype, bucket.Values(i, communicator.rank())));
    outputs.push_back(bucket.in_place[i]
                          ? inputs[i]
                          : std::vector<std::byte>(inputs[i].size()));
  }
  for (size_t i = 0; i < bucket.counts.size(); ++i) {
    collective::FusedTensor tensor;
    tensor.output = absl::MakeSpan(outputs[i]);
    if (!bucket.IsAbsent(i, communicator.rank())) {
      tensor.input = bucket.in_place[i] ? outputs[i] : inputs[i];
    }
    tensors.push_back(tensor);
  }
  const base::FakeClock clock;
  const absl::Status status = collective::FusedAllreduce(
      {communicator, buffer, clock}, bucket.reduction, tensors,
      collective::FusionHooks{});
  ASSERT_TRUE(status.ok()) << status;
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_TRUE(outputs[i] == ExpectedTensor(bucket, i, communicator.size()))
        << "tensor " << i << " of " << bucket.counts[i] << " elements, "
        << std::string(NameOf(bucket.reduction.dtype)) << " "
        << std::string(NameOf(bucket.reduction.op)) << " on rank "
        << communicator.rank();
    if (!bucket.in_place[i]) {
      EXPECT_TRUE(inputs[i] == Encode(bucket.reduction.dtype,
                                      bucket.Values(i, communicator.rank())))
          << "input " << i << " was changed";
    }
  }
}

}  // namespace hvdlite::testing
