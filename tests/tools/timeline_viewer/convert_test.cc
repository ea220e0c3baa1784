// What is converted is decoded again, by Perfetto's rules.
#include "tools/timeline_viewer/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "support/input_error.h"
#include "tests/testing/fakes/test_files.h"
#include "timeline/record/part_merge.h"
#include "timeline/record/trace_recorder.h"
#include "tools/timeline_viewer/perfetto_trace.pb.h"
#include "tools/timeline_viewer/viewer.h"

namespace hvdlite::timeline_viewer {
namespace {

using perfetto::TrackEvent;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

const base::SteadyClock kClock;

std::string Unpack(const std::string& packed) {
  std::string bytes(size_t{1} << 20, '\0');
  uLongf size = static_cast<uLongf>(bytes.size());
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(bytes.data()), &size,
                       reinterpret_cast<const Bytef*>(packed.data()),
                       static_cast<uLong>(packed.size())),
            Z_OK);
  bytes.resize(size);
  return bytes;
}

// Reads a trace as trace_processor does: names as they come up, slices by a
// stack for each track.
class Decoder {
 public:
  explicit Decoder(const std::string& bytes) {
    perfetto::Trace outer;
    EXPECT_TRUE(outer.ParseFromString(bytes));
    for (const auto& packed : outer.packet()) {
      EXPECT_LT(packed.compressed_packets().size(), 512u << 10);
      perfetto::Trace inner;
      EXPECT_TRUE(inner.ParseFromString(Unpack(packed.compressed_packets())));
      for (const auto& packet : inner.packet()) Read(packet);
    }
    for (const auto& [track, open] : open_) EXPECT_TRUE(open.empty());
    for (const auto& [flow, from] : flow_begins_) {
      EXPECT_TRUE(arrows_by_flow_.contains(flow)) << "does not end: " << from;
    }
    for (const auto& [flow, arrow] : arrows_by_flow_) arrows.push_back(arrow);
  }

  std::vector<std::string> slices;    // "process/lane name start+duration args"
  std::vector<std::string> instants;  // "process/lane name time"
  std::vector<std::string> values;    // "process/counter time value"
  std::vector<std::string> arrows;    // "from -> to"

 private:
  struct Open {
    std::string name;
    uint64_t start_ns;
    std::string args;
  };

  void Read(const perfetto::TracePacket& packet) {
    EXPECT_EQ(packet.trusted_packet_sequence_id(), 1u);
    for (const auto& name : packet.interned_data().event_names()) {
      event_names_[name.iid()] = name.name();
    }
    for (const auto& name : packet.interned_data().debug_annotation_names()) {
      arg_names_[name.iid()] = name.name();
    }
    for (const auto& name :
         packet.interned_data().debug_annotation_string_values()) {
      arg_texts_[name.iid()] = name.name();
    }
    if (packet.has_track_descriptor()) {
      const auto& track = packet.track_descriptor();
      EXPECT_FALSE(tracks_.contains(track.uuid()));
      tracks_[track.uuid()] =
          track.has_parent_uuid()
              ? absl::StrCat(tracks_.at(track.parent_uuid()), "/", track.name())
              : track.name();
      if (track.has_counter()) counters_.insert(track.uuid());
    }
    if (packet.has_track_event()) ReadEvent(packet);
  }

  void ReadEvent(const perfetto::TracePacket& packet) {
    const TrackEvent& event = packet.track_event();
    EXPECT_EQ(packet.sequence_flags(), 2u);
    EXPECT_GE(packet.timestamp(), last_ns_);
    last_ns_ = packet.timestamp();
    const std::string& track = tracks_.at(event.track_uuid());
    std::vector<Open>& open = open_[event.track_uuid()];
    EXPECT_EQ(counters_.contains(event.track_uuid()),
              event.type() == TrackEvent::TYPE_COUNTER);
    switch (event.type()) {
      case TrackEvent::TYPE_SLICE_BEGIN:
        open.push_back(
            {event_names_.at(event.name_iid()), last_ns_, Args(event)});
        ReadFlows(event, open.back().name);
        break;
      case TrackEvent::TYPE_SLICE_END:
        ASSERT_FALSE(open.empty());
        slices.push_back(absl::StrCat(
            track, " ", open.back().name, " ", open.back().start_ns, "+",
            last_ns_ - open.back().start_ns, open.back().args));
        open.pop_back();
        break;
      case TrackEvent::TYPE_INSTANT:
        instants.push_back(absl::StrCat(
            track, " ", event_names_.at(event.name_iid()), " ", last_ns_));
        break;
      default:
        values.push_back(absl::StrCat(track, " ", last_ns_, " ",
                                      event.has_double_counter_value()
                                          ? event.double_counter_value()
                                          : event.counter_value()));
    }
  }

  std::string Args(const TrackEvent& event) {
    std::string args;
    for (const auto& arg : event.debug_annotations()) {
      absl::StrAppend(&args, " ", arg_names_.at(arg.name_iid()), "=");
      if (arg.has_string_value_iid()) {
        absl::StrAppend(&args, arg_texts_.at(arg.string_value_iid()));
      } else if (arg.has_double_value()) {
        absl::StrAppend(&args, arg.double_value());
      } else {
        absl::StrAppend(&args, arg.int_value());
      }
    }
    return args;
  }

  void ReadFlows(const TrackEvent& event, const std::string& name) {
    for (const uint64_t flow : event.flow_ids()) {
      EXPECT_TRUE(flow_begins_.emplace(flow, name).second);
    }
    for (const uint64_t flow : event.terminating_flow_ids()) {
      ASSERT_TRUE(flow_begins_.contains(flow)) << "ends before it begins";
      arrows_by_flow_[flow] = absl::StrCat(flow_begins_[flow], " -> ", name);
    }
  }

  std::map<uint64_t, std::string> event_names_, arg_names_, arg_texts_;
  std::map<uint64_t, std::string> tracks_;
  std::set<uint64_t> counters_;
  std::map<uint64_t, std::vector<Open>> open_;  // by track
  std::map<uint64_t, std::string> flow_begins_, arrows_by_flow_;
  uint64_t last_ns_ = 0;
};

class ConvertTest : public ::testing::Test {
 protected:
  Decoder Convert() {
    const auto done = ConvertTrace(path_, TraceFormat::kPerfetto, out_);
    EXPECT_TRUE(done.ok()) << done.status();
    if (done.ok()) done_ = *done;
    return Decoder(timeline::ReadWholeFile(out_));
  }
  Decoder Convert(const std::string& text) {
    timeline::WriteFile(path_, text);
    return Convert();
  }

  const timeline::TemporaryFolder folder_;
  const std::string path_ = folder_.File("trace.json");
  const std::string out_ = folder_.File("trace.perfetto");
  Conversion done_;
};

void RecordRank(const std::string& path, int rank, int64_t batches) {
  timeline::TraceRecorder::Options options;
  options.path = path;
  options.rank = rank;
  options.size = 2;
  options.host = "node";
  options.clock_offset_ns = rank * 1000;
  auto recorder = timeline::TraceRecorder::Open(options, kClock);
  ASSERT_TRUE(recorder.ok()) << recorder.status();
  for (int64_t batch = 1; batch <= batches; ++batch) {
    const int64_t start_ns = batch * 1'000'000;
    for (int tensor = 0; tensor < 2; ++tensor) {
      (*recorder)->Record({.name = "ALLREDUCE",
                           .lane = timeline::kFirstTensorLane + tensor,
                           .start_ns = start_ns,
                           .duration_ns = 500'123,
                           .args = {{"tensor", absl::StrCat("t", tensor)},
                                    {"bytes", int64_t{4096}}},
                           .flow = timeline::TraceEvent::Flow::kOut,
                           .flow_id = batch});
    }
    (*recorder)->Record({.name = "ALLREDUCE_BATCH",
                         .start_ns = start_ns,
                         .duration_ns = 500'123,
                         .args = {{"batch", batch}, {"share", 0.25}},
                         .flow = timeline::TraceEvent::Flow::kIn,
                         .flow_id = batch});
    (*recorder)->Record(
        {.name = "MPI_ALLREDUCE", .start_ns = start_ns, .duration_ns = 1'000});
    (*recorder)->Record({.name = "MEMORY",
                         .start_ns = start_ns,
                         .args = {{"resident_bytes", batch}},
                         .kind = timeline::TraceEvent::Kind::kCounter});
  }
  ASSERT_TRUE((*recorder)->Close().ok());
}

TEST_F(ConvertTest, DecodesToWhatWasRecorded) {
  RecordRank(path_, 0, 1);
  RecordRank(path_, 1, 1);
  const Decoder trace = Convert();
  EXPECT_THAT(trace.slices,
              UnorderedElementsAre(
                  "rank 0 (node)/batch ALLREDUCE_BATCH 1000000+500123 batch=1 "
                  "share=0.25",
                  "rank 0 (node)/batch MPI_ALLREDUCE 1000000+1000",
                  "rank 0 (node)/tensors 1 ALLREDUCE 1000000+500123 tensor=t0 "
                  "bytes=4096",
                  "rank 0 (node)/tensors 2 ALLREDUCE 1000000+500123 tensor=t1 "
                  "bytes=4096",
                  "rank 1 (node)/batch ALLREDUCE_BATCH 1001000+500123 batch=1 "
                  "share=0.25",
                  "rank 1 (node)/batch MPI_ALLREDUCE 1001000+1000",
                  "rank 1 (node)/tensors 1 ALLREDUCE 1001000+500123 tensor=t0 "
                  "bytes=4096",
                  "rank 1 (node)/tensors 2 ALLREDUCE 1001000+500123 tensor=t1 "
                  "bytes=4096"));
  EXPECT_THAT(trace.values,
              ElementsAre("rank 0 (node)/MEMORY resident_bytes 1000000 1",
                          "rank 1 (node)/MEMORY resident_bytes 1001000 1"));
  EXPECT_THAT(trace.arrows, ElementsAre("ALLREDUCE -> ALLREDUCE_BATCH",
                                        "ALLREDUCE -> ALLREDUCE_BATCH",
                                        "ALLREDUCE -> ALLREDUCE_BATCH",
                                        "ALLREDUCE -> ALLREDUCE_BATCH"));
  EXPECT_EQ(done_.flows, 4);
  EXPECT_EQ(done_.left_out, 0);
}

TEST_F(ConvertTest, TakesAtMostAThirdOfTheJson) {
  RecordRank(path_, 0, 2000);
  RecordRank(path_, 1, 2000);
  ASSERT_TRUE(timeline::MergeTraceParts(path_, 2).ok());
  const Decoder trace = Convert();
  EXPECT_EQ(trace.slices.size(), 16000u);
  EXPECT_EQ(trace.values.size(), 4000u);
  EXPECT_LT(std::filesystem::file_size(out_),
            std::filesystem::file_size(path_) / 3);
}

TEST_F(ConvertTest, ConvertsEventsOfOtherPrograms) {
  const Decoder trace = Convert(R"({"traceEvents": [
    {"ph":"B","name":"outer","ts":1,"pid":1,"tid":2,"args":{"a":"b"}},
    {"ph":"B","name":"inner","ts":2,"pid":1,"tid":2},
    {"ph":"i","name":"mark","ts":2.5,"pid":1,"tid":2,"s":"t"},
    {"ph":"s","name":"ac2g","id":7,"ts":2.2,"pid":1,"tid":2},
    {"ph":"E","ts":3,"pid":1,"tid":2},
    {"ph":"E","ts":4,"pid":1,"tid":2},
    {"ph":"B","name":"open","ts":5,"pid":1,"tid":2},
    {"ph":"X","name":"kernel","ts":6,"dur":1,"pid":1,"tid":3},
    {"ph":"f","name":"ac2g","id":7,"ts":6,"pid":1,"tid":3,"bp":"e"},
    {"ph":"n","name":"async","ts":6,"pid":1,"tid":3},
    {"ph":"C","name":"load","ts":6,"pid":1,"args":{"a":0.5,"b":2}}
  ]})");
  EXPECT_THAT(trace.slices, ElementsAre("process 1/lane 2 inner 2000+1000",
                                        "process 1/lane 2 outer 1000+3000 a=b",
                                        "process 1/lane 3 kernel 6000+1000"));
  EXPECT_THAT(trace.instants, ElementsAre("process 1/lane 2 mark 2500"));
  EXPECT_THAT(trace.values, ElementsAre("process 1/load a 6000 0.5",
                                        "process 1/load b 6000 2"));
  EXPECT_THAT(trace.arrows, ElementsAre("inner -> kernel"));
  EXPECT_EQ(done_.left_out, 2);
}

TEST_F(ConvertTest, SlicesThatDoNotNestGetTracksOfTheirOwn) {
  const Decoder trace = Convert(R"([
    {"ph":"X","name":"a","ts":0,"dur":10,"pid":1,"tid":2},
    {"ph":"X","name":"b","ts":5,"dur":10,"pid":1,"tid":2},
    {"ph":"X","name":"c","ts":6,"dur":2,"pid":1,"tid":2},
    {"ph":"X","name":"d","ts":10,"dur":0,"pid":1,"tid":2}
  ])");
  EXPECT_THAT(trace.slices,
              UnorderedElementsAre("process 1/lane 2 a 0+10000",
                                   "process 1/lane 2 b 5000+10000",
                                   "process 1/lane 2 c 6000+2000",
                                   "process 1/lane 2 d 10000+0"));
}

TEST_F(ConvertTest, NegativeTimesAreShifted) {
  const Decoder trace = Convert(R"([
    {"ph":"X","name":"a","ts":-5,"dur":10,"pid":1,"tid":2},
    {"ph":"X","name":"b","ts":5,"dur":10,"pid":1,"tid":2}
  ])");
  EXPECT_THAT(trace.slices, ElementsAre("process 1/lane 2 a 0+10000",
                                        "process 1/lane 2 b 10000+10000"));
  EXPECT_EQ(done_.shift_ns, 5000);
}

TEST_F(ConvertTest, SpeedscopesFormatHasAllSlices) {
  timeline::WriteFile(path_, R"([
    {"ph":"X","name":"a","ts":27001.003,"dur":998.997,"pid":1,"tid":2},
    {"ph":"X","name":"b","ts":28000,"dur":1,"pid":1,"tid":2},
    {"ph":"X","name":"c","ts":28000.5,"dur":1,"pid":1,"tid":2},
    {"ph":"i","name":"d","ts":1,"pid":1,"tid":3}
  ])");
  const auto done = ConvertTrace(path_, TraceFormat::kSpeedscope, out_);
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(done->slices, 3);
  const auto json = nlohmann::json::parse(timeline::ReadWholeFile(out_));
  EXPECT_EQ(json["name"], "trace.json");
  std::vector<std::string> lines;
  for (const auto& profile : json["profiles"]) {
    lines.push_back(profile["name"]);
    EXPECT_EQ(profile["startValue"], profile["events"].front()["at"]);
    EXPECT_EQ(profile["endValue"], profile["events"].back()["at"]);
    for (const auto& event : profile["events"]) {
      lines.push_back(absl::StrCat(
          event["type"].get<std::string>(), " ",
          json["shared"]["frames"][event["frame"].get<size_t>()]["name"]
              .get<std::string>(),
          " ", event["at"].get<int64_t>()));
    }
  }
  EXPECT_THAT(lines,
              ElementsAre("process 1, lane 2", "O a 27001003", "C a 28000000",
                          "O b 28000000", "C b 28001000", "process 1, lane 2",
                          "O c 28000500", "C c 28001500"));
}

TEST_F(ConvertTest, TheProgramTellsWhatItDid) {
  RecordRank(path_, 0, 1);
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(RunViewer({"convert", path_, "--format", "perfetto", "-o", out_},
                      out, err),
            0)
      << err.str();
  EXPECT_THAT(out.str(), HasSubstr("4 slices, 1 values of counters, 0 instants"
                                   ", 2 arrows"));
  timeline::WriteFile(path_, "[]");
  EXPECT_EQ(
      RunViewer({"convert", path_, "--format=perfetto", "-o", out_, "--overwrite"},
                out, err),
      kUnreadable);
  EXPECT_EQ(RunViewer({"convert", path_, "--format=speedscope", "-o", out_,
                       "--overwrite"},
                      out, err),
            kUnreadable);
  EXPECT_EQ(RunViewer({"convert", path_, "--format=x", "-o", out_}, out, err),
            support::kInputErrorExitCode);
  EXPECT_EQ(RunViewer({"convert", path_}, out, err),
            support::kInputErrorExitCode);
}

}  // namespace
}  // namespace hvdlite::timeline_viewer
