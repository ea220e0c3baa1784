#include "collective/fused_allreduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "tests/testing/element_values.h"
#include "tests/testing/reduction_reference.h"
#include "tests/testing/run_ranks.h"

namespace hvdlite::testing {
namespace {

using collective::Communicator;
using collective::Compression;
using collective::FusedAllreduce;
using collective::FusedTensor;
using collective::FusionBuffer;
using collective::FusionHooks;
using collective::Reduction;
using ::testing::ElementsAre;

using Bytes = std::vector<std::byte>;

// What every rank knows of a batch.
struct Batch {
  Reduction reduction;
  std::vector<size_t> counts;       // elements of each tensor
  std::vector<bool> in_place;       // of each tensor
  std::vector<int> absent_on_rank;  // of each tensor; -1: nowhere

  bool IsAbsent(size_t tensor, int rank) const {
    return absent_on_rank[tensor] == rank;
  }
  // What a rank has for a tensor; differs by tensor and rank.
  std::vector<double> Values(size_t tensor, int rank) const {
    return Contribution(reduction.dtype, reduction.op,
                        rank + static_cast<int>(tensor % 2), counts[tensor]);
  }
};

Batch RandomBatch(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](int end) { return static_cast<int>(random() % end); };
  Batch batch;
  Reduction& reduction = batch.reduction;
  reduction.dtype = static_cast<DataType>(below(collective::kNumDataTypes));
  reduction.op = static_cast<ReduceOp>(below(collective::kNumReduceOps));
  if (reduction.op == ReduceOp::kSum && below(2) == 0) {
    reduction.prescale = below(2) == 0 ? 0.5 : 2;
    reduction.postscale = below(2) == 0 ? 0.25 : 2;
  }
  if (below(2) == 0) {  // the values are exact in any float type
    reduction.compression =
        static_cast<Compression>(below(collective::kNumCompressions));
  }
  const int num_tensors = 1 + below(12);
  for (int i = 0; i < num_tensors; ++i) {
    batch.counts.push_back(below(5) == 0 ? below(3000) : below(40));
    batch.in_place.push_back(below(2) == 0);
    batch.absent_on_rank.push_back(below(5) - 2);  // -2 and -1: nowhere
  }
  return batch;
}

double ScaleReference(DataType dtype, double factor, double value) {
  if (IsFloat(dtype) || factor == 1) return value * factor;
  const double scaled = std::trunc(value * factor);
  if (dtype == DataType::kBool) return scaled != 0;
  return scaled;
}

double NeutralReference(DataType dtype, ReduceOp op) {
  if (op == ReduceOp::kProduct) return 1;
  if (op == ReduceOp::kSum) return 0;
  if (dtype == DataType::kBool) return op == ReduceOp::kMin;
  // Beyond all values that occur: what a single rank without input adds.
  return op == ReduceOp::kMin ? 1000 : -1000;
}

Bytes ExpectedTensor(const Batch& batch, size_t tensor, int size) {
  const auto& [dtype, op, prescale, postscale, compression] = batch.reduction;
  std::vector<double> expected;
  for (int rank = 0; rank < size; ++rank) {
    std::vector<double> values = batch.Values(tensor, rank);
    for (double& value : values) {
      value = batch.IsAbsent(tensor, rank)
                  ? NeutralReference(dtype, op)
                  : ScaleReference(dtype, prescale, value);
    }
    if (rank == 0) {
      expected = values;
      continue;
    }
    for (size_t i = 0; i < values.size(); ++i) {
      expected[i] = ReducePair(dtype, op, expected[i], values[i]);
    }
  }
  for (double& value : expected) {
    value = ScaleReference(dtype, postscale, value);
  }
  return Encode(dtype, expected);
}

// Runs the batch on one rank and compares every tensor.
void CheckBatch(Communicator& communicator, FusionBuffer& buffer,
                const Batch& batch) {
  std::vector<Bytes> inputs;
  std::vector<Bytes> outputs;
  std::vector<FusedTensor> tensors;
  for (size_t i = 0; i < batch.counts.size(); ++i) {
    inputs.push_back(
        Encode(batch.reduction.dtype, batch.Values(i, communicator.rank())));
    outputs.push_back(batch.in_place[i] ? inputs[i] : Bytes(inputs[i].size()));
  }
  for (size_t i = 0; i < batch.counts.size(); ++i) {
    FusedTensor tensor;
    tensor.output = absl::MakeSpan(outputs[i]);
    if (!batch.IsAbsent(i, communicator.rank())) {
      tensor.input = batch.in_place[i] ? outputs[i] : inputs[i];
    }
    tensors.push_back(tensor);
  }
  const base::FakeClock clock;
  const absl::Status status = FusedAllreduce(
      {communicator, buffer, clock}, batch.reduction, tensors, FusionHooks{});
  ASSERT_TRUE(status.ok()) << status;
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_TRUE(outputs[i] == ExpectedTensor(batch, i, communicator.size()))
        << "tensor " << i << " of " << batch.counts[i] << " elements, "
        << std::string(NameOf(batch.reduction.dtype)) << " "
        << std::string(NameOf(batch.reduction.op)) << " on rank "
        << communicator.rank();
    if (!batch.in_place[i]) {
      EXPECT_TRUE(inputs[i] == Encode(batch.reduction.dtype,
                                      batch.Values(i, communicator.rank())))
          << "input " << i << " was changed";
    }
  }
}

class FusedAllreduceAtChunkSize : public ::testing::TestWithParam<size_t> {};

TEST_P(FusedAllreduceAtChunkSize, RandomBatchesMatchTheReference) {
  RunInProcessRanks(3, [](Communicator& communicator) {
    FusionBuffer buffer(GetParam());
    for (uint32_t seed = 0; seed < 60; ++seed) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed);
      CheckBatch(communicator, buffer, RandomBatch(seed));
    }
  });
}

TEST_P(FusedAllreduceAtChunkSize, WorldOfOneMatchesTheReference) {
  RunInProcessRanks(1, [](Communicator& communicator) {
    FusionBuffer buffer(GetParam());
    for (uint32_t seed = 0; seed < 60; ++seed) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed);
      Batch batch = RandomBatch(seed);
      for (int& rank : batch.absent_on_rank) {
        if (rank == 0 && batch.reduction.op != ReduceOp::kSum) rank = -1;
      }
      CheckBatch(communicator, buffer, batch);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(ChunkSizes, FusedAllreduceAtChunkSize,
                         ::testing::Values(1, 64, 100, 192, 1024, 65536,
                                           1 << 20));

TEST(FusedAllreduceTest, AverageOfIntegersIsExactAndTruncated) {
  RunInProcessRanks(3, [](Communicator& communicator) {
    FusionBuffer buffer(64);
    const base::FakeClock clock;
    const int rank = communicator.rank();
    Bytes bytes = Encode(
        DataType::kInt32,
        {5, 4.0 + rank, -4.0 - rank, 1.0 * (rank == 0), -2.0 * (rank == 1)});
    ASSERT_TRUE(
        FusedAllreduce({communicator, buffer, clock},
                       {.dtype = DataType::kInt32, .postscale = 1 / 3.0},
                       {FusedTensor{bytes, absl::MakeSpan(bytes)}}, {})
            .ok());
    EXPECT_THAT(Decode(DataType::kInt32, bytes), ElementsAre(5, 5, -5, 0, 0));
  });
}

TEST(FusedAllreduceTest, TensorThatIsAbsentEverywhereIsZero) {
  RunInProcessRanks(3, [](Communicator& communicator) {
    FusionBuffer buffer(64);
    const base::FakeClock clock;
    Bytes bytes(48, std::byte{0x5a});
    ASSERT_TRUE(FusedAllreduce({communicator, buffer, clock},
                               {.prescale = 2, .postscale = 0.5},
                               {FusedTensor{{}, absl::MakeSpan(bytes)}}, {})
                    .ok());
    EXPECT_EQ(bytes, Bytes(48));
  });
}

// Values that no 16-bit type has.
std::vector<double> Awkward(int rank, size_t count) {
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = std::sin(static_cast<double>(i + 1) * (rank + 1)) / 3;
  }
  return values;
}

double Round(DataType dtype, double value) {
  return Decode(dtype, Encode(dtype, {value}))[0];
}

// Inputs of several tensors of awkward values, and what they become when values
// are rounded to `wire` before and after every addition.
void CheckCompression(Communicator& communicator, DataType dtype,
                      Compression compression, DataType wire) {
  const base::FakeClock clock;
  FusionBuffer buffer(192);
  std::vector<Bytes> tensors;
  std::vector<Bytes> expected;
  for (const size_t count : {1, 0, 100, 3, 2500}) {
    tensors.push_back(Encode(dtype, Awkward(communicator.rank(), count)));
    std::vector<double> sums(count);
    for (int rank = 0; rank < communicator.size(); ++rank) {
      const std::vector<double> values =
          Decode(dtype, Encode(dtype, Awkward(rank, count)));
      for (size_t i = 0; i < count; ++i) {
        sums[i] = Round(wire, sums[i] + Round(wire, 0.5 * values[i]));
      }
    }
    for (double& sum : sums) sum *= 0.25;
    expected.push_back(Encode(dtype, sums));
  }
  std::vector<FusedTensor> spans;
  for (Bytes& tensor : tensors) {
    spans.push_back({tensor, absl::MakeSpan(tensor)});
  }
  const absl::Status status = FusedAllreduce({communicator, buffer, clock},
                                             {.dtype = dtype,
                                              .prescale = 0.5,
                                              .postscale = 0.25,
                                              .compression = compression},
                                             spans, {});
  ASSERT_TRUE(status.ok()) << status;
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_TRUE(tensors[i] == expected[i])
        << "tensor " << i << " of " << std::string(NameOf(dtype)) << " as "
        << std::string(NameOf(wire)) << " on rank " << communicator.rank()
        << " of " << communicator.size();
  }
}

TEST(FusedAllreduceTest, CompressedValuesAreRoundedOncePerHop) {
  for (const int size : {1, 2, 3}) {
    RunInProcessRanks(size, [](Communicator& communicator) {
      for (const DataType dtype : {DataType::kFloat32, DataType::kFloat64}) {
        CheckCompression(communicator, dtype, Compression::kFloat16,
                         DataType::kFloat16);
        CheckCompression(communicator, dtype, Compression::kBFloat16,
                         DataType::kBFloat16);
        CheckCompression(communicator, DataType::kBFloat16,
                         Compression::kFloat16, DataType::kBFloat16);
      }
    });
  }
}

}  // namespace
}  // namespace hvdlite::testing
