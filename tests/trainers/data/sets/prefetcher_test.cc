#include "trainers/data/sets/prefetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>

namespace hvdlite::trainers {
namespace {

using ::testing::ThrowsMessage;

class PrefetcherTest : public ::testing::TestWithParam<int> {
 protected:
  const int workers_ = GetParam();
};

INSTANTIATE_TEST_SUITE_P(Workers, PrefetcherTest, ::testing::Values(0, 1, 3));

TEST_P(PrefetcherTest, ReturnsEveryItemInOrder) {
  constexpr int64_t kItems = 200;
  Prefetcher<std::string> items(
      kItems, workers_, [](int64_t i) { return "item " + std::to_string(i); });
  for (int64_t i = 0; i < kItems; ++i) {
    EXPECT_EQ(items.Next(), "item " + std::to_string(i));
  }
}

TEST_P(PrefetcherTest, ExceptionIsThrownInPlaceOfItsItem) {
  Prefetcher<int64_t> items(4, workers_, [](int64_t i) {
    if (i == 1) throw std::runtime_error("item 1 is bad");
    if (i == 2) throw std::runtime_error("item 2 is bad");
    return i;
  });
  EXPECT_EQ(items.Next(), 0);
  EXPECT_THAT([&] { items.Next(); },
              ThrowsMessage<std::runtime_error>("item 1 is bad"));
  EXPECT_THAT([&] { items.Next(); },
              ThrowsMessage<std::runtime_error>("item 2 is bad"));
  EXPECT_EQ(items.Next(), 3);
}

TEST_P(PrefetcherTest, MayEndWithItemsLeft) {
  Prefetcher<int64_t> items(1000, workers_, [](int64_t i) { return i; });
  EXPECT_EQ(items.Next(), 0);
}

TEST_P(PrefetcherTest, MayHaveNoItems) {
  Prefetcher<int64_t> items(0, workers_, [](int64_t i) { return i; });
}

TEST(PrefetcherThreadsTest, LoadsInAdvance) {
  std::latch loaded(2);
  Prefetcher<int64_t> items(2, /*workers=*/1, [&](int64_t i) {
    loaded.count_down();
    return i;
  });
  loaded.wait();
  EXPECT_EQ(items.Next(), 0);
  EXPECT_EQ(items.Next(), 1);
}

TEST(PrefetcherThreadsTest, WorkersLoadAtTheSameTime) {
  std::latch all_busy(3);
  Prefetcher<int64_t> items(3, /*workers=*/3, [&](int64_t i) {
    all_busy.arrive_and_wait();
    return i;
  });
  EXPECT_EQ(items.Next(), 0);
}

TEST(PrefetcherThreadsTest, ReturnsItemsInOrderEvenIfLaterOnesLoadFirst) {
  std::latch others_loaded(2);
  Prefetcher<int64_t> items(3, /*workers=*/2, [&](int64_t i) {
    if (i == 0) {
      others_loaded.wait();
    } else {
      others_loaded.count_down();
    }
    return i;
  });
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(items.Next(), i);
}

TEST(PrefetcherThreadsTest, LoadsAtMostTwoItemsPerWorkerInAdvance) {
  std::latch six_loaded(6);
  std::atomic<int> calls = 0;
  {
    Prefetcher<int64_t> items(1000, /*workers=*/3, [&](int64_t i) {
      if (++calls <= 6) six_loaded.count_down();
      return i;
    });
    six_loaded.wait();
  }
  EXPECT_EQ(calls, 6);
}

TEST(PrefetcherThreadsTest, DestructionWaitsForABusyWorker) {
  std::latch begun(1);
  std::latch may_end(1);
  std::atomic<bool> ended = false;
  std::thread release;
  {
    Prefetcher<int64_t> items(1, /*workers=*/1, [&](int64_t i) {
      begun.count_down();
      may_end.wait();
      ended = true;
      return i;
    });
    begun.wait();
    release = std::thread([&] { may_end.count_down(); });
  }
  EXPECT_TRUE(ended);
  release.join();
}

}  // namespace
}  // namespace hvdlite::trainers
