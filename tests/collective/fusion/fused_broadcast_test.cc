#include <gtest/gtest.h>

#include <vector>

#include "collective/fusion/fusion.h"
#include "tests/collective/fusion/fused_cases.h"
#include "tests/testing/conformance/communicator_checks.h"
#include "tests/testing/worlds/run_ranks.h"

namespace hvdlite::testing {
namespace {

using collective::FusedTensor;

TEST(FusedBroadcastTest, EveryRankGetsTheRootsTensors) {
  for (const size_t chunk_bytes : {1, 128, 4096}) {
    for (int root = 0; root < 3; ++root) {
      RunInProcessRanks(3, [&](Communicator& communicator) {
        RankResources own(chunk_bytes);
        std::vector<Bytes> expected;
        std::vector<Bytes> outputs;
        std::vector<FusedTensor> tensors;
        for (const size_t bytes : {1, 0, 77, 5000, 64, 3}) {
          expected.push_back(PatternBytes(root, 0, /*seed=*/bytes, bytes));
        }
        for (size_t i = 0; i < expected.size(); ++i) {
          const bool is_root = communicator.rank() == root;
          const bool in_place = is_root && i % 2 == 0;
          outputs.push_back(in_place ? expected[i] : Bytes(expected[i].size()));
          tensors.push_back(InPlace(outputs.back()));
          if (!in_place) tensors[i].input = {};
          if (is_root && !in_place) tensors[i].input = expected[i];
        }
        ExpectOk(FusedBroadcast(own.With(communicator), root, tensors, {}));
        EXPECT_EQ(outputs, expected) << "on rank " << communicator.rank();
      });
    }
  }
}

}  // namespace
}  // namespace hvdlite::testing
