#include "negotiation/engine/bucket_trace.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fakes/kept_events.h"

namespace hvdlite::negotiation {
namespace {

using collective::FusionPhase;
using ::testing::ElementsAre;
using timeline::KeptEvents;
using timeline::TraceEvent;

class BucketTraceTest : public ::testing::Test {
 protected:
  BucketTraceTest() {
    for (int i = 0; i < 2; ++i) {
      auto pending = std::make_shared<SubmittedOperation>();
      pending->operation.request.name = i == 0 ? "a" : "b";
      pending->operation.request.tensors = {{.shape = {8}}};
      pending->submitted_ns = 100 + i;
      pending->track = 10 + i;
      operations_.push_back(pending);
      decision_.tensors.push_back({});
    }
    decision_.number = 7;
  }

  void RunTwoChunks(BucketTrace& trace) {
    trace.OnGatePassed(1050);
    trace.OnPhase(FusionPhase::kPack, 0, 1050, 1060);
    trace.OnPhase(FusionPhase::kCommunicate, 0, 1060, 1160);
    trace.OnPhase(FusionPhase::kUnpack, 0, 1160, 1165);
    trace.OnPhase(FusionPhase::kPack, 1, 1165, 1175);
    trace.OnPhase(FusionPhase::kCommunicate, 1, 1175, 1275);
    trace.OnPhase(FusionPhase::kUnpack, 1, 1275, 1280);
    trace.Record(decision_, operations_, 1300);
  }

  std::shared_ptr<KeptEvents> recorder_ = std::make_shared<KeptEvents>();
  Decision decision_;
  std::vector<SubmittedPtr> operations_;
};

TEST_F(BucketTraceTest, PhasesOfAllChunksAreDrawnInSequence) {
  BucketTrace trace(recorder_, /*trace_chunks=*/false, "MPI", 1000);
  RunTwoChunks(trace);
  EXPECT_THAT(recorder_->Names(timeline::kBucketTrack),
              ElementsAre("ALLREDUCE_BUCKET", "WAIT_FOR_RANKS",
                          "MEMCPY_IN_FUSION_BUFFER", "MPI_ALLREDUCE",
                          "MEMCPY_OUT_FUSION_BUFFER"));
  std::map<std::string, TraceEvent> by_name;
  for (const TraceEvent& event : recorder_->events) by_name[event.name] = event;
  EXPECT_EQ(by_name["MEMCPY_IN_FUSION_BUFFER"].start_ns, 1050);
  EXPECT_EQ(by_name["MEMCPY_IN_FUSION_BUFFER"].duration_ns, 20);
  EXPECT_EQ(by_name["MPI_ALLREDUCE"].start_ns, 1070);
  EXPECT_EQ(by_name["MPI_ALLREDUCE"].duration_ns, 200);
  EXPECT_EQ(by_name["MEMCPY_OUT_FUSION_BUFFER"].start_ns, 1270);
  EXPECT_EQ(by_name["MEMCPY_OUT_FUSION_BUFFER"].duration_ns, 10);
  EXPECT_EQ(by_name["ALLREDUCE_BUCKET"].start_ns, 1000);
  EXPECT_EQ(by_name["ALLREDUCE_BUCKET"].duration_ns, 300);
  EXPECT_THAT(recorder_->Names(timeline::kChunkTrack), ElementsAre());
}

TEST_F(BucketTraceTest, PhaseIsDrawnAfterTheOneItFirstFollowed) {
  BucketTrace trace(recorder_, /*trace_chunks=*/true, "MPI", 1000);
  for (const int64_t start : {1000, 1100}) {
    trace.OnPhase(FusionPhase::kPack, start, start, start + 10);
    trace.OnPhase("COMPRESS", start, start + 10, start + 15);
    trace.OnPhase(FusionPhase::kCommunicate, start, start + 15, start + 75);
    trace.OnPhase(FusionPhase::kUnpack, start, start + 75, start + 80);
    trace.OnPhase("CHECK", start, start + 80, start + 100);
  }
  trace.Record(decision_, operations_, 1300);
  EXPECT_THAT(
      recorder_->Names(timeline::kBucketTrack),
      ElementsAre("ALLREDUCE_BUCKET", "MEMCPY_IN_FUSION_BUFFER", "COMPRESS",
                  "MPI_ALLREDUCE", "MEMCPY_OUT_FUSION_BUFFER", "CHECK"));
  int64_t start_ns = 1000;
  for (const TraceEvent& event : recorder_->events) {
    if (event.track != timeline::kBucketTrack ||
        event.name == "ALLREDUCE_BUCKET") {
      continue;
    }
    EXPECT_EQ(event.start_ns, start_ns) << event.name;
    start_ns += event.duration_ns;
    if (event.name == "COMPRESS") {
      EXPECT_EQ(event.duration_ns, 10);
    } else if (event.name == "CHECK") {
      EXPECT_EQ(event.duration_ns, 40);
    }
  }
  EXPECT_EQ(start_ns, 1200);
  const auto chunks = recorder_->Names(timeline::kChunkTrack);
  EXPECT_EQ(std::count(chunks.begin(), chunks.end(), "COMPRESS"), 2);
}

TEST_F(BucketTraceTest, BucketNamesItsAlgorithm) {
  const auto algorithm = [&] {
    for (const TraceEvent& event : recorder_->events) {
      if (event.name != "ALLREDUCE_BUCKET") continue;
      for (const auto& arg : event.args) {
        if (arg.first == "algorithm") return std::get<std::string>(arg.second);
      }
    }
    return std::string("none");
  };
  BucketTrace by_chunks(recorder_, false, "MPI", 1000);
  RunTwoChunks(by_chunks);
  EXPECT_EQ(algorithm(), "MPI by chunks");
  recorder_->events.clear();
  BucketTrace chosen(recorder_, false, "MPI", 1000);
  chosen.OnAlgorithm("shared memory, slices");
  RunTwoChunks(chosen);
  EXPECT_EQ(algorithm(), "shared memory, slices");
}

TEST_F(BucketTraceTest, TensorsNegotiateUntilTheBucketStarts) {
  BucketTrace trace(recorder_, false, "MPI", 1000);
  RunTwoChunks(trace);
  EXPECT_THAT(recorder_->Names(10),
              ElementsAre("NEGOTIATE_ALLREDUCE", "ALLREDUCE"));
  EXPECT_THAT(recorder_->Names(11),
              ElementsAre("NEGOTIATE_ALLREDUCE", "ALLREDUCE"));
  EXPECT_EQ(recorder_->events[0].start_ns, 100);
  EXPECT_EQ(recorder_->events[0].duration_ns, 900);
  EXPECT_EQ(recorder_->events[1].start_ns, 1000);
  EXPECT_EQ(recorder_->events[1].duration_ns, 300);
}

TEST_F(BucketTraceTest, ChunksAreRecordedIfEnabled) {
  BucketTrace trace(recorder_, /*trace_chunks=*/true, "MPI", 1000);
  RunTwoChunks(trace);
  EXPECT_EQ(recorder_->Names(timeline::kChunkTrack).size(), 6u);
}

TEST_F(BucketTraceTest, OperationWithoutTrackIsLeftOut) {
  operations_[0]->track = 0;  // submitted before recording began
  BucketTrace trace(recorder_, false, "MPI", 1000);
  RunTwoChunks(trace);
  EXPECT_THAT(recorder_->Names(0), ElementsAre());
  EXPECT_EQ(recorder_->Names(11).size(), 2u);
}

}  // namespace
}  // namespace hvdlite::negotiation
