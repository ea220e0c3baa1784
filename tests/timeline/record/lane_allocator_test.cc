#include <gtest/gtest.h>

#include "timeline/record/trace_event.h"

namespace hvdlite::timeline {
namespace {

TEST(LaneAllocatorTest, TracksInUseAreDistinct) {
  LaneAllocator lanes;
  EXPECT_EQ(lanes.Acquire(), kFirstTensorLane);
  EXPECT_EQ(lanes.Acquire(), kFirstTensorLane + 1);
  EXPECT_EQ(lanes.Acquire(), kFirstTensorLane + 2);
}

TEST(LaneAllocatorTest, LowestFreeTrackIsReusedFirst) {
  LaneAllocator lanes;
  for (int i = 0; i < 4; ++i) lanes.Acquire();
  lanes.Release(kFirstTensorLane + 3);
  lanes.Release(kFirstTensorLane + 1);
  EXPECT_EQ(lanes.Acquire(), kFirstTensorLane + 1);
  EXPECT_EQ(lanes.Acquire(), kFirstTensorLane + 3);
  EXPECT_EQ(lanes.Acquire(), kFirstTensorLane + 4);
}

}  // namespace
}  // namespace hvdlite::timeline
