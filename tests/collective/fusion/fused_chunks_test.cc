// How fused collectives use the communicator, the buffer and the hooks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "collective/fusion/fusion.h"
#include "tests/testing/conformance/element_values.h"
#include "tests/testing/fakes/fake_communicator.h"

namespace hvdlite::testing {
namespace {

using collective::Compression;
using collective::DataType;
using collective::FusedAllreduce;
using collective::FusedBroadcast;
using collective::FusedTensor;
using collective::FusionBuffer;
using collective::FusionHooks;
using collective::FusionPhase;
using collective::ReduceOp;
using collective::Reduction;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Bytes = std::vector<std::byte>;

constexpr Reduction kSumOfBytes = {.dtype = DataType::kUint8};

// Pretends to be one of two ranks, of which the other contributes the same.
class RecordingCommunicator final : public UnimplementedCommunicator {
 public:
  explicit RecordingCommunicator(base::FakeClock& clock, int size = 2)
      : UnimplementedCommunicator(0, size), clock_(clock) {}

  absl::Status Allreduce(absl::Span<std::byte> buffer, DataType dtype,
                         ReduceOp) override {
    dtypes.push_back(dtype);
    return Record(buffer);
  }
  absl::Status Broadcast(absl::Span<std::byte> buffer, int) override {
    return Record(buffer);
  }

  std::vector<size_t> chunk_bytes;
  std::vector<DataType> dtypes;
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
};

Bytes CountingBytes(size_t size, int start) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>((start + i) & 0xff);
  }
  return bytes;
}

TEST(FusedChunksTest, BytesOfAllTensorsAreContiguousAcrossChunks) {
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
  ASSERT_TRUE(
      FusedAllreduce({communicator, buffer, clock}, kSumOfBytes, tensors, {})
          .ok());
  EXPECT_THAT(communicator.chunk_bytes, ElementsAre(128, 128, 88));
  EXPECT_EQ(communicator.sent, expected);
}

TEST(FusedChunksTest, HooksSeeEveryPhaseOfEveryChunk) {
  base::FakeClock clock;
  RecordingCommunicator communicator(clock);
  FusionBuffer buffer(64);
  Bytes bytes(150);
  using Phase = std::tuple<FusionPhase, int64_t, int64_t, int64_t>;
  std::vector<Phase> phases;
  int pauses = 0;
  std::vector<double> shares;
  const int64_t zero = clock.NowNanos();
  FusionHooks hooks;
  hooks.on_phase = [&](FusionPhase phase, int64_t chunk, int64_t start_ns,
                       int64_t end_ns) {
    phases.push_back({phase, chunk, start_ns - zero, end_ns - zero});
  };
  hooks.on_progress = [&](double share) { shares.push_back(share); };
  hooks.between_chunks = [&] {
    ++pauses;
    clock.Advance(absl::Nanoseconds(10));  // belongs to no phase
    return absl::OkStatus();
  };
  ASSERT_TRUE(FusedAllreduce({communicator, buffer, clock}, kSumOfBytes,
                             {FusedTensor{bytes, absl::MakeSpan(bytes)}}, hooks)
                  .ok());
  EXPECT_EQ(pauses, 2);
  EXPECT_THAT(shares, ElementsAre(1.0 / 3, 2.0 / 3));
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

TEST(FusedChunksTest, FirstErrorEndsTheBatch) {
  base::FakeClock clock;
  RecordingCommunicator communicator(clock);
  communicator.result = absl::UnavailableError("gone");
  FusionBuffer buffer(64);
  Bytes bytes(150);
  const std::vector<FusedTensor> tensors = {{bytes, absl::MakeSpan(bytes)}};
  EXPECT_EQ(
      FusedAllreduce({communicator, buffer, clock}, kSumOfBytes, tensors, {}),
      communicator.result);
  EXPECT_THAT(communicator.chunk_bytes, ElementsAre(64));
}

TEST(FusedChunksTest, NothingIsCommunicatedForNoBytes) {
  base::FakeClock clock;
  RecordingCommunicator communicator(clock);
  FusionBuffer buffer(64);
  EXPECT_TRUE(FusedAllreduce({communicator, buffer, clock},
                             {.dtype = DataType::kInt64}, {FusedTensor{}}, {})
                  .ok());
  EXPECT_TRUE(FusedAllreduce({communicator, buffer, clock},
                             {.dtype = DataType::kInt64}, {}, {})
                  .ok());
  EXPECT_THAT(communicator.chunk_bytes, IsEmpty());
}

TEST(FusedChunksTest, WorldOfOneUsesNeitherBufferNorCommunicator) {
  base::FakeClock clock;
  RecordingCommunicator communicator(clock, /*size=*/1);
  FusionBuffer buffer(64);
  std::memset(buffer.bytes().data(), 0x11, buffer.bytes().size());
  Bytes input = CountingBytes(32, 3);
  Bytes output(32);
  const std::vector<FusedTensor> tensors = {{input, absl::MakeSpan(output)}};
  ASSERT_TRUE(
      FusedAllreduce({communicator, buffer, clock}, kSumOfBytes, tensors, {})
          .ok());
  EXPECT_EQ(output, input);
  output.assign(32, std::byte{0});
  ASSERT_TRUE(
      FusedBroadcast({communicator, buffer, clock}, 0, tensors, {}).ok());
  EXPECT_EQ(output, input);
  EXPECT_THAT(communicator.chunk_bytes, IsEmpty());
  EXPECT_THAT(buffer.bytes(), Each(std::byte{0x11}));
}

TEST(FusedChunksTest, TensorWhoseInputAndOutputDifferInSizeIsRefused) {
  base::FakeClock clock;
  RecordingCommunicator communicator(clock);
  FusionBuffer buffer(64);
  Bytes input(8);
  Bytes output(12);
  const absl::Status status = FusedAllreduce(
      {communicator, buffer, clock}, {},
      {FusedTensor{{}, {}}, FusedTensor{input, absl::MakeSpan(output)}}, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()),
            "tensor 1 of the batch has 8 bytes of input, but 12 of output");
  EXPECT_EQ(FusedAllreduce({communicator, buffer, clock},
                           {.dtype = DataType::kFloat64},
                           {FusedTensor{output, absl::MakeSpan(output)}}, {})
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(communicator.chunk_bytes, IsEmpty());
}

TEST(FusedChunksTest, CompressedChunkHoldsAsManyElementsAsFit) {
  base::FakeClock clock;
  for (const DataType dtype : {DataType::kFloat32, DataType::kFloat64}) {
    RecordingCommunicator communicator(clock);
    FusionBuffer buffer(64);
    Bytes bytes = Encode(dtype, std::vector<double>(75, 0.5));
    ASSERT_TRUE(
        FusedAllreduce({communicator, buffer, clock},
                       {.dtype = dtype, .compression = Compression::kBFloat16},
                       {FusedTensor{bytes, absl::MakeSpan(bytes)}}, {})
            .ok());
    EXPECT_THAT(communicator.chunk_bytes, ElementsAre(64, 64, 22));
    EXPECT_THAT(communicator.dtypes, Each(DataType::kBFloat16));
    EXPECT_EQ(communicator.sent,
              Encode(DataType::kBFloat16, std::vector<double>(75, 0.5)));
    EXPECT_THAT(Decode(dtype, bytes), Each(0.5));
  }
}

TEST(FusedChunksTest, UnknownDataTypeIsRefused) {
  base::FakeClock clock;
  RecordingCommunicator communicator(clock);
  FusionBuffer buffer(64);
  const absl::Status status =
      FusedAllreduce({communicator, buffer, clock},
                     {.dtype = static_cast<DataType>(77)}, {}, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(std::string(status.message()),
            "the batch has the unknown data type 77");
}

}  // namespace
}  // namespace hvdlite::testing
