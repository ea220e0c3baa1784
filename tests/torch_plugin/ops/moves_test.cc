// Special cases of operations that move tensors, objects and barriers.
// values_test.cc tests the values.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tests/torch_plugin/rank_values.h"

namespace hvdlite {
namespace {

TEST(MovesTest, ScalarsAndTensorsWithoutElements) {
  const int last = size() - 1;
  EXPECT_EQ(broadcast(at::scalar_tensor(rank(), at::kLong), last).item<int>(),
            last);
  EXPECT_EQ(broadcast(at::empty({3, 0}), 0).sizes(), at::IntArrayRef({3, 0}));
  EXPECT_EQ(allgather(at::empty({0, 4})).sizes(), at::IntArrayRef({0, 4}));
  EXPECT_EQ(allgather(at::empty({rank() + 1, 0})).sizes(),
            at::IntArrayRef({size() * (size() + 1) / 2, 0}));
  const auto [output, received] =
      alltoall(at::empty({0, 3}), at::zeros({size()}, at::kInt));
  EXPECT_EQ(output.sizes(), at::IntArrayRef({0, 3}));
  EXPECT_TRUE(received.eq(0).all().item<bool>());
}

TEST(MovesTest, AlltoallSplitsEquallyWhereNoSplitsAreGiven) {
  const at::Tensor mine = at::arange(2 * size(), at::kLong).add(100 * rank());
  const at::Tensor expected = at::arange(size(), at::kLong)
                                  .mul(100)
                                  .add(2 * rank())
                                  .repeat_interleave(2)
                                  .add(at::arange(2 * size()).remainder(2));
  for (const at::Tensor& none :
       {at::Tensor(), at::empty({0}), at::empty({0}, at::kLong)}) {
    const auto [output, received] = alltoall(mine, none);
    EXPECT_TRUE(output.equal(expected));
    EXPECT_EQ(received.scalar_type(),
              none.defined() && none.scalar_type() == at::kLong ? at::kLong
                                                                : at::kInt);
    EXPECT_TRUE(received.eq(2).all().item<bool>());
  }
}

TEST(ObjectTest, BytesOfAnyLengthAreBroadcast) {
  ForSeveralSets([](const ProcessSet& set) {
    const int root = set.ranks().back();
    const std::string text("x\0y", 3);
    EXPECT_EQ(broadcast_object(rank() == root ? text : "", root, set), text);
    EXPECT_EQ(broadcast_object(rank() == root ? "" : "ignored", root, set), "");
  });
}

TEST(ObjectTest, BytesOfAllMembersAreGathered) {
  ForSeveralSets([](const ProcessSet& set) {
    const auto text = [](int from) {
      return std::string(static_cast<size_t>(3 * from),
                         static_cast<char>('a' + from));
    };
    std::vector<std::string> expected;
    for (const int from : set.ranks()) expected.push_back(text(from));
    EXPECT_EQ(allgather_object(text(rank()), set), expected);
    EXPECT_EQ(allgather_object("", set),
              std::vector<std::string>(static_cast<size_t>(set.size())));
  });
}

// Each member creates a file before it enters, and then finds the files of all.
TEST(BarrierTest, NoMemberLeavesBeforeAllHaveEntered) {
  constexpr int kRounds = 50;
  ForSeveralSets([](const ProcessSet& set) {
    const std::string prefix = broadcast_object(
        ::testing::TempDir() + "hvdlite_barrier_" + std::to_string(getpid()),
        set.ranks().front(), set);
    const auto file = [&](int round, int member) {
      return prefix + "." + std::to_string(round) + "." +
             std::to_string(member);
    };
    for (int round = 0; round < kRounds; ++round) {
      std::ofstream(file(round, set.rank())) << "entered";
      barrier(set);
      for (int member = 0; member < set.size(); ++member) {
        EXPECT_TRUE(std::ifstream(file(round, member)).is_open())
            << "member " << member << " in round " << round;
      }
    }
    barrier(set);
    for (int round = 0; round < kRounds; ++round) {
      std::remove(file(round, set.rank()).c_str());
    }
  });
}

TEST(BarrierTest, DoesNotDisturbOperationsInFlight) {
  const at::Tensor ones = at::eye(5);
  const Work sent = broadcast_async(at::full({3, 3}, rank()), size() - 1);
  const Work first = allgather_async(ones);
  const Work second = allgather_async(at::zeros({5, 5}));
  const Work sum = allreduce_async(ones, With(ReduceOp::Sum));
  barrier();
  EXPECT_TRUE(sum.wait().equal(ones * size()));
  EXPECT_TRUE(sent.wait().eq(size() - 1).all().item<bool>());
  EXPECT_TRUE(first.wait().equal(ones.repeat({size(), 1})));
  EXPECT_TRUE(second.wait().equal(at::zeros({5 * size(), 5})));
}

}  // namespace
}  // namespace hvdlite
