#include <gtest/gtest.h>

#include "timeline/record/trace_event.h"

namespace hvdlite::timeline {
namespace {

TEST(TrackAllocatorTest, TracksInUseAreDistinct) {
  TrackAllocator tracks;
  EXPECT_EQ(tracks.Acquire(), kFirstTensorTrack);
  EXPECT_EQ(tracks.Acquire(), kFirstTensorTrack + 1);
  EXPECT_EQ(tracks.Acquire(), kFirstTensorTrack + 2);
}

TEST(TrackAllocatorTest, LowestFreeTrackIsReusedFirst) {
  TrackAllocator tracks;
  for (int i = 0; i < 4; ++i) tracks.Acquire();
  tracks.Release(kFirstTensorTrack + 3);
  tracks.Release(kFirstTensorTrack + 1);
  EXPECT_EQ(tracks.Acquire(), kFirstTensorTrack + 1);
  EXPECT_EQ(tracks.Acquire(), kFirstTensorTrack + 3);
  EXPECT_EQ(tracks.Acquire(), kFirstTensorTrack + 4);
}

}  // namespace
}  // namespace hvdlite::timeline
