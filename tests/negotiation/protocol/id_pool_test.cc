#include "negotiation/protocol/id_pool.h"

#include <algorithm>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvdlite::negotiation {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(IdPoolTest, RequestCountsAsUsedAgainAfterFewOthers) {
  IdPool pool(4);
  for (uint64_t i = 0; i < 100; ++i) {
    EXPECT_FALSE(pool.IsUsedAgain(i)) << "used once";
  }
  EXPECT_TRUE(pool.IsUsedAgain(96));
  EXPECT_FALSE(pool.IsUsedAgain(10)) << "that was long ago";
  EXPECT_TRUE(pool.IsUsedAgain(10));
}

TEST(IdPoolTest, UnusedIdsAreForgotten) {
  IdPool pool(16);
  const uint32_t idle = pool.Take();
  const uint32_t used = pool.Take();
  std::vector<uint32_t> forgotten;
  int uses = 1;  // after the use of `idle`
  for (; forgotten.empty() && uses < 100; ++uses) {
    pool.OnUse(used);
    forgotten = pool.TakeForgotten();
  }
  EXPECT_THAT(forgotten, ElementsAre(idle));
  EXPECT_GE(uses, 16);
  EXPECT_LE(uses, 16 + 16 / 8 + 1);
}

TEST(IdPoolTest, LowestFreeIdIsGivenOutFirst) {
  IdPool pool(1000);
  for (uint32_t id = 0; id < 4; ++id) EXPECT_EQ(pool.Take(), id);
  for (const uint32_t id : {2, 0, 3, 0}) pool.Release(id);
  EXPECT_THAT(pool.TakeForgotten(), ElementsAre(0, 2, 3));
  EXPECT_THAT(pool.TakeForgotten(), IsEmpty());
  EXPECT_EQ(pool.Take(), 4) << "other ranks may still use the others";
  pool.Return({3, 0, 2});
  EXPECT_EQ(pool.Take(), 0);
  EXPECT_EQ(pool.Take(), 2);
}

TEST(IdPoolTest, IdIsNotForgottenTwice) {
  IdPool pool(1000);
  const uint32_t id = pool.Take();
  pool.Release(id);
  pool.Retire({id});
  EXPECT_THAT(pool.TakeForgotten(), IsEmpty());
}

// This holds for any number of requests, used once or twice each.
TEST(IdPoolTest, NumberOfIdsIsBounded) {
  for (const uint64_t uses : {1, 2, 3}) {
    IdPool pool(64);
    uint32_t largest = 0;
    for (uint64_t request = 0; request < 10'000; ++request) {
      for (uint64_t i = 0; i < uses; ++i) {
        if (pool.IsUsedAgain(request)) largest = std::max(largest, pool.Take());
        const std::vector<uint32_t> forgotten = pool.TakeForgotten();
        pool.Return(forgotten);
      }
    }
    EXPECT_LE(largest, 64 + 64 / 8);
  }
}

}  // namespace
}  // namespace hvdlite::negotiation
