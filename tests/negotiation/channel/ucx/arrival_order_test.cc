#include "gtest/gtest.h"
#include "negotiation/channel/ucx/ucx_link.h"

namespace hvdlite::negotiation {
namespace {

TEST(ArrivalOrderTest, IsEmptyAtFirst) {
  ArrivalOrder order;
  EXPECT_FALSE(order.Take().has_value());
}

TEST(ArrivalOrderTest, EarlyMessagesWaitForTheirPredecessors) {
  ArrivalOrder order;
  order.Add(1, 2, "two");
  order.Add(1, 1, "one");
  order.Add(1, 4, "four");
  EXPECT_FALSE(order.Take().has_value());
  order.Add(1, 0, "zero");
  EXPECT_EQ(order.Take()->bytes, "zero");
  EXPECT_EQ(order.Take()->bytes, "one");
  EXPECT_EQ(order.Take()->bytes, "two");
  EXPECT_FALSE(order.Take().has_value());
  order.Add(1, 3, "three");
  EXPECT_EQ(order.Take()->bytes, "three");
  EXPECT_EQ(order.Take()->bytes, "four");
  EXPECT_FALSE(order.Take().has_value());
}

TEST(ArrivalOrderTest, SendersDoNotWaitForOneAnother) {
  ArrivalOrder order;
  order.Add(1, 1, "early");
  order.Add(2, 0, "in order");
  const auto message = order.Take();
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->from, 2);
  EXPECT_EQ(message->bytes, "in order");
  EXPECT_FALSE(order.Take().has_value());
}

}  // namespace
}  // namespace hvdlite::negotiation
