// broadcast(), objects and barrier().
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/torch_plugin/rank_values.h"

namespace hvdlite {
namespace {

TEST(BroadcastTest, EveryDtypeFromEveryRootInEveryForm) {
  ForSeveralSets([](const ProcessSet& set) {
    const auto options = BroadcastOptions().process_set(set);
    for (const int root : set.ranks()) {
      for (const at::ScalarType type : kDtypes) {
        const at::Tensor mine = Values(rank(), {2, 3}, type);
        const at::Tensor expected = Values(root, {2, 3}, type);
        EXPECT_TRUE(broadcast(mine, root, options).equal(expected));
        EXPECT_TRUE(
            broadcast_async(mine, root, options).wait().equal(expected));
        EXPECT_TRUE(mine.equal(Values(rank(), {2, 3}, type)));
        const at::Tensor first = mine.clone();
        EXPECT_TRUE(broadcast_(first, root, options).is_same(first));
        EXPECT_TRUE(first.equal(expected));
        const at::Tensor second = mine.clone();
        EXPECT_TRUE(
            broadcast_async_(second, root, options).wait().is_same(second));
        EXPECT_TRUE(second.equal(expected));
      }
    }
  });
}

TEST(BroadcastTest, TakesAnyStridesScalarsAndEmptyTensors) {
  const at::Tensor transposed = Values(rank(), {2, 3}, at::kFloat).t();
  broadcast_(transposed, size() - 1);
  EXPECT_TRUE(transposed.equal(Values(size() - 1, {2, 3}, at::kFloat).t()));
  EXPECT_EQ(
      broadcast(at::scalar_tensor(rank(), at::kLong), size() - 1).item<int>(),
      size() - 1);
  EXPECT_EQ(broadcast(at::empty({3, 0}), 0).sizes(), at::IntArrayRef({3, 0}));
}

TEST(BroadcastTest, LargerThanAChunk) {
  const at::Tensor tensor = at::full({10'000'000}, rank());
  broadcast_(tensor, size() - 1);
  EXPECT_TRUE(tensor.eq(size() - 1).all().item<bool>());
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

TEST(BarrierTest, WaitsForEveryMember) {
  ForSeveralSets([](const ProcessSet& set) {
    // Complete only when all are there, so that it is not before this rank is.
    const auto options = AllreduceOptions().op(ReduceOp::Sum).process_set(set);
    const Work before = allreduce_async(at::ones({1}), options);
    barrier(set);
    barrier(set);
    EXPECT_EQ(before.wait().item<int>(), set.size());
  });
}

}  // namespace
}  // namespace hvdlite
