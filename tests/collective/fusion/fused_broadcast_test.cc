#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "base/clock.h"
#include "collective/fusion/fusion.h"
#include "tests/testing/worlds/run_ranks.h"

namespace hvdlite::testing {
namespace {

using collective::Communicator;
using collective::FusedBroadcast;
using collective::FusedTensor;
using collective::FusionBuffer;

std::vector<std::byte> BroadcastBytes(int root, size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>((i * 7 + size + root) & 0xff);
  }
  return bytes;
}

TEST(FusedBroadcastTest, EveryRankEndsWithTheRootsTensors) {
  for (const size_t chunk_bytes : {1, 128, 4096}) {
    for (int root = 0; root < 3; ++root) {
      RunInProcessRanks(3, [&](Communicator& communicator) {
        FusionBuffer buffer(chunk_bytes);
        const base::FakeClock clock;
        const bool is_root = communicator.rank() == root;
        std::vector<std::vector<std::byte>> inputs;
        std::vector<std::vector<std::byte>> outputs;
        std::vector<std::vector<std::byte>> expected;
        for (const size_t bytes : {1, 0, 77, 5000, 64, 3}) {
          expected.push_back(BroadcastBytes(root, bytes));
          inputs.push_back(expected.back());
          outputs.push_back(std::vector<std::byte>(bytes));
        }
        std::vector<FusedTensor> tensors;
        for (size_t i = 0; i < inputs.size(); ++i) {
          FusedTensor tensor{{}, absl::MakeSpan(outputs[i])};
          if (is_root && i % 2 == 0) {
            outputs[i] = inputs[i];
            tensor.output = absl::MakeSpan(outputs[i]);
            tensor.input = outputs[i];
          } else if (is_root) {
            tensor.input = inputs[i];
          }
          tensors.push_back(tensor);
        }
        const absl::Status status =
            FusedBroadcast({communicator, buffer, clock}, root, tensors, {});
        EXPECT_TRUE(status.ok()) << status;
        EXPECT_EQ(outputs, expected) << "on rank " << communicator.rank();
      });
    }
  }
}

}  // namespace
}  // namespace hvdlite::testing
