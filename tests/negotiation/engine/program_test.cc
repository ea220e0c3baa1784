// Random programs of operations, in process: every rank a coordinator.
#include "tests/testing/conformance/program.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "tests/testing/conformance/program_runner.h"
#include "tests/testing/unless_sanitized.h"
#include "tests/testing/worlds/coordinated_world.h"

namespace hvdlite::testing {
namespace {

constexpr int kAllPrograms = 50;  // of each size
constexpr int kProgramsOfEachSize = UnlessSanitized(kAllPrograms, 10);

class ProgramTest : public ::testing::TestWithParam<int> {};

// A failure names its seed: make it the first to repeat it.
constexpr uint64_t kFirstSeed = 1;

TEST_P(ProgramTest, RandomProgramsGiveWhatTheyMust) {
  const int size = GetParam();
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + kProgramsOfEachSize;
       ++seed) {
    const Program program = ProgramGenerator(seed, size).Generate();
    CoordinatedWorld world(size, program.options);
    world.OnEveryRank(
        [&](int rank) { ProgramRunner(program, world[rank], rank).Run(); });
    ASSERT_FALSE(HasFailure()) << "seed " << seed << ", " << size << " ranks";
  }
}

constexpr int kSizes[] = {1, 2, 3, 4, 5, 8};

INSTANTIATE_TEST_SUITE_P(Ranks, ProgramTest, ::testing::ValuesIn(kSizes));

// So that no other test needs to try them one by one.
TEST(ProgramsTest, HaveEveryTypeOfEveryCollectiveAndEveryOpAndCompressionOfIt) {
  std::set<std::tuple<Collective, DataType, ReduceOp>> ops;
  std::set<std::tuple<Collective, DataType, collective::Compression>> wires;
  for (const int size : kSizes) {
    for (int i = 0; i < kAllPrograms; ++i) {
      for (const auto& segment :
           ProgramGenerator(kFirstSeed + i, size).Generate().segments) {
        for (const ProgramStep& step : segment.steps) {
          const Request& request = step.operation.request;
          for (const TensorSpec& tensor : request.tensors) {
            ops.emplace(request.collective, tensor.dtype, request.op);
            wires.emplace(request.collective, tensor.dtype,
                          request.compression);
          }
        }
      }
    }
  }
  for (const DataType dtype : AllDataTypes()) {
    SCOPED_TRACE(NameOf(dtype));
    for (const Collective collective :
         {Collective::kBroadcast, Collective::kAllgather,
          Collective::kAlltoall}) {
      EXPECT_TRUE(ops.contains({collective, dtype, ReduceOp::kSum}));
    }
    for (const Collective collective :
         {Collective::kAllreduce, Collective::kReducescatter,
          Collective::kAdasum}) {
      const bool adasum = collective == Collective::kAdasum;
      if (adasum && (!Rounds(dtype) || PartOf(dtype) != dtype)) continue;
      SCOPED_TRACE(NameOf(collective));
      for (const ReduceOp op : ReduceOpsOf(dtype)) {
        if (adasum && op != ReduceOp::kSum) continue;
        EXPECT_TRUE(ops.contains({collective, dtype, op})) << NameOf(op);
      }
      for (int kind = 0; kind < collective::kNumCompressions; ++kind) {
        EXPECT_TRUE(wires.contains(
            {collective, dtype, static_cast<collective::Compression>(kind)}))
            << kind;
      }
    }
  }
}

}  // namespace
}  // namespace hvdlite::testing
