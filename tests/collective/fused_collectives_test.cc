#include "collective/fused_collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "tests/testing/element_values.h"
#include "tests/testing/reduction_reference.h"
#include "tests/testing/run_ranks.h"

namespace hvdlite::testing {
namespace {

using collective::Communicator;
using collective::FusedAllreduce;
using collective::FusedBroadcast;
using collective::FusedTensor;
using collective::FusionBuffer;
using collective::FusionHooks;
using collective::FusionPhase;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Bytes = std::vector<std::byte>;

// What every rank knows of a batch.
struct Batch {
  DataType dtype = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  double prescale = 1;
  double postscale = 1;
  std::vector<size_t> counts;       // elements of each tensor
  std::vector<bool> in_place;       // of each tensor
  std::vector<int> absent_on_rank;  // of each tensor; -1: nowhere

  bool IsAbsent(size_t tensor, int rank) const {
    return absent_on_rank[tensor] == rank;
  }
  // What a rank has for a tensor; differs by tensor and rank.
  std::vector<double> Values(size_t tensor, int rank) const {
    return Contribution(dtype, op, rank + static_cast<int>(tensor % 2),
                        counts[tensor]);
  }
};

Batch RandomBatch(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](int end) { return static_cast<int>(random() % end); };
  Batch batch;
  batch.dtype = static_cast<DataType>(below(collective::kNumDataTypes));
  batch.op = static_cast<ReduceOp>(below(collective::kNumReduceOps));
  if (batch.op == ReduceOp::kSum && below(2) == 0) {
    batch.prescale = below(2) == 0 ? 0.5 : 2;
    batch.postscale = below(2) == 0 ? 0.25 : 2;
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
  std::vector<double> expected;
  for (int rank = 0; rank < size; ++rank) {
    std::vector<double> values = batch.Values(tensor, rank);
    for (double& value : values) {
      value = batch.IsAbsent(tensor, rank)
                  ? NeutralReference(batch.dtype, batch.op)
                  : ScaleReference(batch.dtype, batch.prescale, value);
    }
    if (rank == 0) {
      expected = values;
      continue;
    }
    for (size_t i = 0; i < values.size(); ++i) {
      expected[i] = ReducePair(batch.dtype, batch.op, expected[i], values[i]);
    }
  }
  for (double& value : expected) {
    value = ScaleReference(batch.dtype, batch.postscale, value);
  }
  return Encode(batch.dtype, expected);
}

// Runs the batch on one rank and compares every tensor.
void CheckBatch(Communicator& communicator, FusionBuffer& buffer,
                const Batch& batch) {
  std::vector<Bytes> inputs;
  std::vector<Bytes> outputs;
  std::vector<FusedTensor> tensors;
  for (size_t i = 0; i < batch.counts.size(); ++i) {
    inputs.push_back(Encode(batch.dtype, batch.Values(i, communicator.rank())));
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
  const absl::Status status =
      FusedAllreduce({communicator, buffer, clock}, batch.dtype, batch.op,
                     batch.prescale, batch.postscale, tensors, FusionHooks{});
  ASSERT_TRUE(status.ok()) << status;
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_TRUE(outputs[i] == ExpectedTensor(batch, i, communicator.size()))
        << "tensor " << i << " of " << batch.counts[i] << " elements, "
        << std::string(NameOf(batch.dtype)) << " "
        << std::string(NameOf(batch.op)) << " on rank " << communicator.rank();
    if (!batch.in_place[i]) {
      EXPECT_TRUE(inputs[i] ==
                  Encode(batch.dtype, batch.Values(i, communicator.rank())))
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
        if (rank == 0 && batch.op != ReduceOp::kSum) rank = -1;
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
    ASSERT_TRUE(FusedAllreduce({communicator, buffer, clock}, DataType::kInt32,
                               ReduceOp::kSum, 1, 1 / 3.0,
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
                               DataType::kFloat32, ReduceOp::kSum, 2, 0.5,
                               {FusedTensor{{}, absl::MakeSpan(bytes)}}, {})
                    .ok());
    EXPECT_EQ(bytes, Bytes(48));
  });
}

// Pretends to be one of two ranks, of which the other contributes the same.
class RecordingCommunicator final : public Communicator {
 public:
  explicit RecordingCommunicator(base::FakeClock& clock, int size = 2)
      : clock_(clock), size_(size) {}

  int rank() const override { return 0; }
  int size() const override { return size_; }
  absl::string_view name() const override { return "RECORDING"; }
  absl::Status Allreduce(absl::Span<std::byte> buffer, DataType,
                         ReduceOp) override {
    return Record(buffer);
  }
  absl::Status Broadcast(absl::Span<std::byte> buffer, int) override {
    return Record(buffer);
  }
  absl::Status Barrier() override { return absl::OkStatus(); }

  std::vector<size_t> chunk_bytes;
  Bytes sent;
  absl::Status result;

 private:
  absl::Status Record(absl::Span<std::byte> buffer) {
    clock_.Advance(absl::Nanoseconds(100));
    chunk_bytes.push_back(buffer.size());
    sent.insert(sent.end(), buffer.begin(), buffer.end());
    return result;
  }

  base::FakeClock& clock_;
  const int size_;
};

Bytes CountingBytes(size_t size, int start) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>((start + i) & 0xff);
  }
  return bytes;
}

TEST(FusedAllreduceTest, BytesOfAllTensorsAreContiguousAcrossChunks) {
  base::FakeClock clock;
  RecordingCommunicator communicator(clock);
  FusionBuffer buffer(100);  // rounded up to 128
  Bytes expected;
  std::vector<Bytes> storage;
  for (const size_t bytes : {4, 0, 20, 300, 0, 8, 12}) {
    storage.push_back(CountingBytes(bytes, static_cast<int>(expected.size())));
    expected.insert(expected.end(), storage.back().begin(),
                    storage.back().end());
  }
  std::vector<FusedTensor> tensors;
  for (Bytes& bytes : storage) {
    tensors.push_back({bytes, absl::MakeSpan(bytes)});
  }
  ASSERT_TRUE(FusedAllreduce({communicator, buffer, clock}, DataType::kUint8,
                             ReduceOp::kSum, 1, 1, tensors, {})
                  .ok());
  EXPECT_THAT(communicator.chunk_bytes, ElementsAre(128, 128, 88));
  EXPECT_EQ(communicator.sent, expected);
}

TEST(FusedAllreduceTest, HooksSeeEveryPhaseOfEveryChunk) {
  base::FakeClock clock;
  RecordingCommunicator communicator(clock);
  FusionBuffer buffer(64);
  Bytes bytes(150);
  using Phase = std::tuple<FusionPhase, int64_t, int64_t, int64_t>;
  std::vector<Phase> phases;
  int pauses = 0;
  const int64_t zero = clock.NowNanos();
  FusionHooks hooks;
  hooks.on_phase = [&](FusionPhase phase, int64_t chunk, int64_t start_ns,
                       int64_t end_ns) {
    phases.push_back({phase, chunk, start_ns - zero, end_ns - zero});
  };
  hooks.between_chunks = [&] {
    ++pauses;
    clock.Advance(absl::Nanoseconds(10));  // belongs to no phase
    return absl::OkStatus();
  };
  ASSERT_TRUE(FusedAllreduce({communicator, buffer, clock}, DataType::kUint8,
                             ReduceOp::kSum, 1, 1,
                             {FusedTensor{bytes, absl::MakeSpan(bytes)}}, hooks)
                  .ok());
  EXPECT_EQ(pauses, 2);
  EXPECT_THAT(phases, ElementsAre(Phase{FusionPhase::kPack, 0, 0, 0},
                                  Phase{FusionPhase::kCommunicate, 0, 0, 100},
                                  Phase{FusionPhase::kUnpack, 0, 100, 100},
                                  Phase{FusionPhase::kPack, 1, 110, 110},
                                  Phase{FusionPhase::kCommunicate, 1, 110, 210},
                                  Phase{FusionPhase::kUnpack, 1, 210, 210},
                                  Phase{FusionPhase::kPack, 2, 220, 220},
                                  Phase{FusionPhase::kCommunicate, 2, 220, 320},
                                  Phase{FusionPhase::kUnpack, 2, 320, 320}));
}

TEST(FusedAllreduceTest, FirstErrorEndsTheBatch) {
  base::FakeClock clock;
  RecordingCommunicator communicator(clock);
  communicator.result = absl::UnavailableError("gone");
  FusionBuffer buffer(64);
  Bytes bytes(150);
  const std::vector<FusedTensor> tensors = {{bytes, absl::MakeSpan(bytes)}};
  EXPECT_EQ(FusedAllreduce({communicator, buffer, clock}, DataType::kUint8,
                           ReduceOp::kSum, 1, 1, tensors, {}),
            communicator.result);
  EXPECT_THAT(communicator.chunk_bytes, ElementsAre(64));
}

TEST(FusedAllreduceTest, NothingIsCommunicatedForNoBytes) {
  base::FakeClock clock;
  RecordingCommunicator communicator(clock);
  FusionBuffer buffer(64);
  EXPECT_TRUE(FusedAllreduce({communicator, buffer, clock}, DataType::kInt64,
                             ReduceOp::kSum, 1, 1, {FusedTensor{}}, {})
                  .ok());
  EXPECT_TRUE(FusedAllreduce({communicator, buffer, clock}, DataType::kInt64,
                             ReduceOp::kSum, 1, 1, {}, {})
                  .ok());
  EXPECT_THAT(communicator.chunk_bytes, IsEmpty());
}

TEST(FusedAllreduceTest, WorldOfOneUsesNeitherBufferNorCommunicator) {
  base::FakeClock clock;
  RecordingCommunicator communicator(clock, /*size=*/1);
  FusionBuffer buffer(64);
  std::memset(buffer.bytes().data(), 0x11, buffer.bytes().size());
  Bytes input = CountingBytes(32, 3);
  Bytes output(32);
  const std::vector<FusedTensor> tensors = {{input, absl::MakeSpan(output)}};
  ASSERT_TRUE(FusedAllreduce({communicator, buffer, clock}, DataType::kUint8,
                             ReduceOp::kSum, 1, 1, tensors, {})
                  .ok());
  EXPECT_EQ(output, input);
  output.assign(32, std::byte{0});
  ASSERT_TRUE(
      FusedBroadcast({communicator, buffer, clock}, 0, tensors, {}).ok());
  EXPECT_EQ(output, input);
  EXPECT_THAT(communicator.chunk_bytes, IsEmpty());
  EXPECT_THAT(buffer.bytes(), ::testing::Each(std::byte{0x11}));
}

TEST(FusedAllreduceTest, TensorWhoseInputAndOutputDifferInSizeIsRefused) {
  base::FakeClock clock;
  RecordingCommunicator communicator(clock);
  FusionBuffer buffer(64);
  Bytes input(8);
  Bytes output(12);
  const absl::Status status = FusedAllreduce(
      {communicator, buffer, clock}, DataType::kFloat32, ReduceOp::kSum, 1, 1,
      {FusedTensor{{}, {}}, FusedTensor{input, absl::MakeSpan(output)}}, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()),
            "tensor 1 of the batch has 8 bytes of input, but 12 of output");
  EXPECT_EQ(FusedAllreduce({communicator, buffer, clock}, DataType::kFloat64,
                           ReduceOp::kSum, 1, 1,
                           {FusedTensor{output, absl::MakeSpan(output)}}, {})
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(communicator.chunk_bytes, IsEmpty());
}

}  // namespace
}  // namespace hvdlite::testing
