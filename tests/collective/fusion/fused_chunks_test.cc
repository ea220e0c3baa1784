// How fused collectives use the communicator, the buffer and the hooks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "base/clock.h"
#include "collective/fusion/fusion.h"
#include "tests/collective/fusion/fused_cases.h"
#include "tests/testing/conformance/element_values.h"

namespace hvdlite::testing {
namespace {

using collective::Compression;
using collective::DataType;
using collective::FusedAllreduce;
using collective::FusedTensor;
using collective::FusionHooks;
using collective::FusionPhase;
using collective::ReduceOp;
using collective::Reduction;
using ::testing::Each;
using ::testing::ElementsAre;

constexpr Reduction kSumOfBytes = {.dtype = DataType::kUint8};

// Acts as one of two ranks; the other one contributes the same data.
class RecordingCommunicator final : public UnimplementedCommunicator {
 public:
  explicit RecordingCommunicator(base::FakeClock& clock)
      : UnimplementedCommunicator(0, 2), clock_(clock) {}

  absl::Status Allreduce(absl::Span<std::byte> buffer, DataType dtype,
                         ReduceOp) override {
    clock_.Advance(absl::Nanoseconds(100));
    dtypes.push_back(dtype);
    chunk_bytes.push_back(buffer.size());
    sent.insert(sent.end(), buffer.begin(), buffer.end());
    return absl::OkStatus();
  }

  std::vector<size_t> chunk_bytes;
  std::vector<DataType> dtypes;
  Bytes sent;

 private:
  base::FakeClock& clock_;
};

TEST(FusedChunksTest, BytesOfAllTensorsAreContiguousAcrossChunks) {
  RankResources own(100);  // rounded up to 128
  RecordingCommunicator communicator(own.clock);
  Bytes expected;
  std::vector<Bytes> storage;
  for (const size_t bytes : {4, 0, 20, 300, 0, 8, 12}) {
    storage.emplace_back(bytes);
    for (std::byte& byte : storage.back()) {
      byte = static_cast<std::byte>(expected.size() & 0xff);
      expected.push_back(byte);
    }
  }
  std::vector<FusedTensor> tensors;
  for (Bytes& bytes : storage) tensors.push_back(InPlace(bytes));
  ASSERT_TRUE(
      FusedAllreduce(own.With(communicator), kSumOfBytes, tensors, {}).ok());
  EXPECT_THAT(communicator.chunk_bytes, ElementsAre(128, 128, 88));
  EXPECT_EQ(communicator.sent, expected);
}

TEST(FusedChunksTest, HooksSeeEveryPhaseOfEveryChunk) {
  RankResources own(64);
  RecordingCommunicator communicator(own.clock);
  Bytes bytes(150);
  using Phase = std::tuple<FusionPhase, int64_t, int64_t, int64_t>;
  std::vector<Phase> phases;
  int pauses = 0;
  std::vector<double> shares;
  const int64_t zero = own.clock.NowNanos();
  FusionHooks hooks;
  hooks.on_phase = [&](FusionPhase phase, int64_t chunk, int64_t start_ns,
                       int64_t end_ns) {
    phases.push_back({phase, chunk, start_ns - zero, end_ns - zero});
  };
  hooks.on_progress = [&](double share) { shares.push_back(share); };
  hooks.between_chunks = [&] {
    ++pauses;
    own.clock.Advance(absl::Nanoseconds(10));  // belongs to no phase
    return absl::OkStatus();
  };
  ASSERT_TRUE(FusedAllreduce(own.With(communicator), kSumOfBytes,
                             {InPlace(bytes)}, hooks)
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

TEST(FusedChunksTest, CompressedChunkIsFilledCompletely) {
  for (const DataType dtype : {DataType::kFloat32, DataType::kFloat64}) {
    RankResources own(64);
    RecordingCommunicator communicator(own.clock);
    Bytes bytes = Encode(dtype, std::vector<double>(75, 0.5));
    ASSERT_TRUE(
        FusedAllreduce(own.With(communicator),
                       {.dtype = dtype, .compression = Compression::kBFloat16},
                       {InPlace(bytes)}, {})
            .ok());
    EXPECT_THAT(communicator.chunk_bytes, ElementsAre(64, 64, 22));
    EXPECT_THAT(communicator.dtypes, Each(DataType::kBFloat16));
    EXPECT_EQ(communicator.sent,
              Encode(DataType::kBFloat16, std::vector<double>(75, 0.5)));
    EXPECT_THAT(Decode(dtype, bytes), Each(0.5));
  }
}

}  // namespace
}  // namespace hvdlite::testing
