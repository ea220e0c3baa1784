#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "collective/communicator.h"
#include "tests/collective/floats.h"
#include "tests/testing/conformance/communicator_conformance.h"
#include "tests/testing/fakes/fake_communicator.h"
#include "tests/testing/worlds/run_ranks.h"

namespace hvdlite::testing {
namespace {

// Forwards calls to an in-process world. Fails the test if a call reduces
// floats, since a library may add them in any order.
class Strict final : public ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;

  absl::Status Allreduce(absl::Span<std::byte> buffer, DataType dtype,
                         ReduceOp op) override {
    EXPECT_FALSE(Rounds(dtype)) << std::string(NameOf(dtype));
    return ForwardingCommunicator::Allreduce(buffer, dtype, op);
  }
  absl::Status ReduceScatter(absl::Span<std::byte> buffer,
                             absl::Span<const size_t> bytes, DataType dtype,
                             ReduceOp op) override {
    EXPECT_FALSE(Rounds(dtype)) << std::string(NameOf(dtype));
    return ForwardingCommunicator::ReduceScatter(buffer, bytes, dtype, op);
  }
};

using Body = std::function<void(Communicator&)>;

void RunInRankOrder(int size, const Body& body) {
  auto world = collective::CreateInProcessWorld(size);
  std::vector<std::unique_ptr<Communicator>> wrapped;
  for (auto& inner : world) {
    wrapped.push_back(collective::CreateRankOrderCommunicator(
        std::make_unique<Strict>(std::move(inner))));
  }
  RunRanks(size, [&](int rank) { body(*wrapped[rank]); });
}

ConformanceBackend RankOrderBackend(int size) {
  return {.name = "Ranks" + std::to_string(size),
          .run_ranks = [=](const Body& body) { RunInRankOrder(size, body); }};
}

INSTANTIATE_TEST_SUITE_P(RankOrder, CommunicatorConformance,
                         ::testing::Values(RankOrderBackend(1),
                                           RankOrderBackend(2),
                                           RankOrderBackend(3),
                                           RankOrderBackend(5)),
                         BackendName);

std::vector<float> RandomValues(int rank, size_t count) {
  std::mt19937 random(static_cast<uint32_t>(rank) + 1);
  std::vector<float> values(count);
  for (float& value : values) {
    value = static_cast<float>(random() % 2001) / 1000.0f - 1.0f;
  }
  return values;
}

TEST(RankOrderCommunicatorTest, SumsHaveTheSameBitsForAnyDivisionOfTheBuffer) {
  constexpr size_t kCount = 1000;
  RunInRankOrder(4, [](Communicator& communicator) {
    std::vector<float> expected(kCount);
    for (int rank = 0; rank < 4; ++rank) {
      const std::vector<float> values = RandomValues(rank, kCount);
      for (size_t i = 0; i < kCount; ++i) {
        expected[i] = rank == 0 ? values[i] : expected[i] + values[i];
      }
    }
    for (const size_t piece : {1000, 999, 333, 64, 7, 1}) {
      std::vector<float> values = RandomValues(communicator.rank(), kCount);
      for (size_t begin = 0; begin < kCount; begin += piece) {
        ExpectOk(SumFloats(communicator,
                           absl::MakeSpan(values).subspan(begin, piece)));
      }
      EXPECT_EQ(values, expected) << "in pieces of " << piece;
    }
  });
}

}  // namespace
}  // namespace hvdlite::testing
