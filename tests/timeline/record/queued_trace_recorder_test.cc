#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "timeline/record/trace_recorder.h"

namespace hvdlite::timeline {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// The lines that a test's sink received, and a gate that can block it.
// Thread-safe.
class SinkState {
 public:
  // Append() returns `status` and takes nothing, until the status is changed.
  void FailWith(absl::Status status) {
    base::MutexLock lock(&mutex_);
    failure_ = std::move(status);
  }
  // Append() does not return until OpenGate().
  void ShutGate() {
    base::MutexLock lock(&mutex_);
    is_shut_ = true;
  }
  // The next Append() throws std::bad_alloc.
  void HaveNoMemory() {
    base::MutexLock lock(&mutex_);
    has_no_memory_ = true;
  }
  void OpenGate() {
    base::MutexLock lock(&mutex_);
    is_shut_ = false;
    changed_.NotifyAll();
  }
  void WaitForWriterAtGate() {
    base::MutexLock lock(&mutex_);
    while (!is_writer_waiting_) changed_.Wait(&mutex_);
  }
  void WaitForText(const std::string& part) {
    base::MutexLock lock(&mutex_);
    while (text_.find(part) == std::string::npos) changed_.Wait(&mutex_);
  }
  std::string text() {
    base::MutexLock lock(&mutex_);
    return text_;
  }

  absl::Status Append(absl::string_view lines) {
    base::MutexLock lock(&mutex_);
    is_writer_waiting_ = is_shut_;
    changed_.NotifyAll();
    while (is_shut_) changed_.Wait(&mutex_);
    is_writer_waiting_ = false;
    if (!failure_.ok()) return failure_;
    if (std::exchange(has_no_memory_, false)) throw std::bad_alloc();
    text_.append(lines.data(), lines.size());
    changed_.NotifyAll();
    return absl::OkStatus();
  }

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  bool is_shut_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_writer_waiting_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  bool has_no_memory_ ABSL_GUARDED_BY(mutex_) = false;
  std::string text_ ABSL_GUARDED_BY(mutex_);
};

class FakeSink final : public TraceSink {
 public:
  explicit FakeSink(std::shared_ptr<SinkState> state)
      : state_(std::move(state)) {}
  absl::Status Append(absl::string_view lines) override {
    return state_->Append(lines);
  }

 private:
  const std::shared_ptr<SinkState> state_;
};

class QueuedTraceRecorderTest : public ::testing::Test {
 protected:
  std::unique_ptr<TraceRecorder> MakeRecorder(int max_queued_events) {
    TraceRecorder::Options options = options_;
    options.rank = 3;
    options.size = 4;
    options.host = "node1";
    options.clock_offset_ns = -17;
    options.max_queued_events = max_queued_events;
    auto recorder = TraceRecorder::Create(options, clock_,
                                          std::make_unique<FakeSink>(sink_));
    EXPECT_TRUE(recorder.ok()) << recorder.status();
    return *std::move(recorder);
  }

  // Events of the closed trace, without metadata.
  std::vector<nlohmann::json> RecordedEvents() {
    std::vector<nlohmann::json> events;
    for (const auto& event : nlohmann::json::parse(sink_->text())) {
      if (event["ph"] == "X") events.push_back(event);
    }
    return events;
  }

  nlohmann::json Metadata(const std::string& name) {
    for (const auto& event : nlohmann::json::parse(sink_->text())) {
      if (event["name"] == name) return event;
    }
    return nullptr;
  }

  base::FakeClock clock_;
  TraceRecorder::Options options_;  // without rank, size and host
  const std::shared_ptr<SinkState> sink_ = std::make_shared<SinkState>();
};

TraceEvent Event(const std::string& name, int64_t start_ns = 0) {
  TraceEvent event;
  event.name = name;
  event.start_ns = start_ns;
  return event;
}

TEST_F(QueuedTraceRecorderTest, WritesAllFieldsOfAnEvent) {
  auto recorder = MakeRecorder(100);
  recorder->Record({.name = "ALLREDUCE",
                    .track = 12,
                    .start_ns = 1'234'567'890,
                    .duration_ns = 1'002,
                    .args = {{"bytes", int64_t{4096}},
                             {"lateness", 0.5},
                             {"tensor", "layer1.weight"}}});
  ASSERT_TRUE(recorder->Close().ok());
  const auto events = RecordedEvents();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0], nlohmann::json::parse(R"({
    "ts": 1234567.890, "dur": 1.002, "ph": "X", "name": "ALLREDUCE",
    "pid": 3, "tid": 12,
    "args": {"bytes": 4096, "lateness": 0.5, "tensor": "layer1.weight"}})"));
  EXPECT_THAT(sink_->text(),
              HasSubstr("{\"ts\":1234567.890,\"dur\":1.002,\"ph\":\"X\""));
}

TEST_F(QueuedTraceRecorderTest, DescribesRankAndTracks) {
  auto recorder = MakeRecorder(100);
  recorder->Record({.name = "a", .track = kBucketTrack, .args = {}});
  recorder->Record({.name = "b", .track = kFirstTensorTrack, .args = {}});
  recorder->Record({.name = "c", .track = kFirstTensorTrack, .args = {}});
  ASSERT_TRUE(recorder->Close().ok());
  EXPECT_EQ(Metadata("process_name")["args"]["name"], "rank 3 (node1)");
  EXPECT_EQ(Metadata("process_sort_index")["args"]["sort_index"], 3);
  EXPECT_EQ(Metadata("hvdlite_trace")["args"],
            nlohmann::json::parse(
                R"({"rank": 3, "size": 4, "host": "node1",
                    "clock": "CLOCK_MONOTONIC", "clock_offset_ns": -17})"));
  int named_tracks = 0;
  for (const auto& event : nlohmann::json::parse(sink_->text())) {
    EXPECT_EQ(event["pid"], 3);
    EXPECT_NE(event["tid"], 0);
    named_tracks += event["name"] == "thread_name" ? 1 : 0;
  }
  EXPECT_EQ(named_tracks, 2);
}

TEST_F(QueuedTraceRecorderTest, SpecialCharactersStayValidJson) {
  const std::string awkward =
      "quote \" backslash \\ newline \n bell \x07 umlaut \xc3\xbc "
      "broken \xff\xc3 end";
  const std::string repaired =
      "quote \" backslash \\ newline \n bell \x07 umlaut \xc3\xbc "
      "broken \xef\xbf\xbd\xef\xbf\xbd end";
  auto recorder = MakeRecorder(100);
  recorder->Record({.name = awkward, .args = {{awkward, awkward}}});
  recorder->Record(
      {.name = "odd numbers",
       .args = {{"nan", std::numeric_limits<double>::quiet_NaN()}}});
  ASSERT_TRUE(recorder->Close().ok());
  const auto events = RecordedEvents();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0]["name"], repaired);
  EXPECT_EQ(events[0]["args"][repaired], repaired);
  EXPECT_TRUE(events[1]["args"]["nan"].is_null());
}

TEST_F(QueuedTraceRecorderTest, TimesAreExactToTheNanosecond) {
  auto recorder = MakeRecorder(100);
  recorder->Record(Event("early", -1'500));
  recorder->Record(Event("late", 9'000'000'000'000'001));
  recorder->Record({.name = "backwards", .duration_ns = -5, .args = {}});
  ASSERT_TRUE(recorder->Close().ok());
  EXPECT_THAT(sink_->text(), HasSubstr("{\"ts\":-1.500,"));
  EXPECT_THAT(sink_->text(), HasSubstr("{\"ts\":9000000000000.001,"));
  EXPECT_EQ(RecordedEvents()[2]["dur"], 0);
}

TEST_F(QueuedTraceRecorderTest, EventsReachTheFileWithoutClose) {
  auto recorder = MakeRecorder(100);
  recorder->Record(Event("first"));
  sink_->WaitForText("\"first\"");
  recorder->Record(Event("second"));
  sink_->WaitForText("\"second\"");
  EXPECT_EQ(sink_->text().back(), '\n');
}

TEST_F(QueuedTraceRecorderTest, FullQueueDropsAndCountsWithoutBlocking) {
  auto recorder = MakeRecorder(4);
  sink_->ShutGate();
  recorder->Record(Event("being written"));
  sink_->WaitForWriterAtGate();
  for (int i = 0; i < 7; ++i) recorder->Record(Event("queued or dropped"));
  EXPECT_EQ(recorder->dropped_events(), 3);
  sink_->OpenGate();
  ASSERT_TRUE(recorder->Close().ok());
  EXPECT_EQ(RecordedEvents().size(), 5u);
  EXPECT_EQ(Metadata("hvdlite_dropped_events")["args"]["dropped_events"], 3);
}

TEST_F(QueuedTraceRecorderTest, ThreadsRecordConcurrentlyInTheirOwnOrder) {
  constexpr int kThreads = 4;
  constexpr int kEvents = 2000;
  auto recorder = MakeRecorder(kThreads * kEvents);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&recorder, t] {
      for (int i = 0; i < kEvents; ++i) {
        recorder->Record({.name = "e",
                          .track = kFirstTensorTrack + t,
                          .start_ns = i * 1000,
                          .args = {}});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(recorder->Close().ok());
  EXPECT_EQ(recorder->dropped_events(), 0);
  std::vector<int> next(kThreads, 0);
  for (const auto& event : RecordedEvents()) {
    const int thread = event["tid"].get<int>() - kFirstTensorTrack;
    EXPECT_EQ(event["ts"], next[thread]++);
  }
  EXPECT_THAT(next, ::testing::Each(kEvents));
}

TEST_F(QueuedTraceRecorderTest, EventsAfterCloseAreDropped) {
  auto recorder = MakeRecorder(100);
  ASSERT_TRUE(recorder->Close().ok());
  const std::string closed = sink_->text();
  recorder->Record(Event("late"));
  EXPECT_EQ(recorder->dropped_events(), 1);
  EXPECT_TRUE(recorder->Close().ok());
  recorder.reset();
  EXPECT_EQ(sink_->text(), closed);
}

TEST_F(QueuedTraceRecorderTest, DestructorCloses) {
  auto recorder = MakeRecorder(100);
  recorder->Record(Event("a"));
  recorder.reset();
  EXPECT_EQ(RecordedEvents().size(), 1u);
}

TEST_F(QueuedTraceRecorderTest, StepsAreConsecutive) {
  const int64_t start_ns = clock_.NowNanos();
  auto recorder = MakeRecorder(100);
  recorder->StepOver(start_ns + 4'000, {});
  recorder->StepOver(start_ns + 5'000, {.work = 64, .cpu_us = 1});
  ASSERT_TRUE(recorder->Close().ok());
  const auto events = RecordedEvents();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0]["name"], "TRAINING_STEP");
  EXPECT_EQ(events[0]["tid"], kStepTrack);
  EXPECT_EQ(events[0]["args"]["step"], 1);
  EXPECT_EQ(events[0]["ts"], start_ns / 1000.0);
  EXPECT_EQ(events[0]["dur"], 4.0);
  EXPECT_FALSE(events[0]["args"].contains("work"));
  EXPECT_EQ(events[1]["args"]["step"], 2);
  EXPECT_EQ(events[1]["args"]["work"], 64);
  EXPECT_EQ(events[1]["args"]["cpu_us"], 1);
  EXPECT_EQ(events[1]["ts"], start_ns / 1000.0 + 4.0);
  EXPECT_EQ(events[1]["dur"], 1.0);
}

TEST_F(QueuedTraceRecorderTest, RecordsOnlyTheChosenSteps) {
  options_.steps = {2, 3};
  auto recorder = MakeRecorder(100);
  for (int step = 1; step <= 5; ++step) {
    recorder->Record(Event("in " + std::to_string(step)));
    recorder->StepOver(step * 1'000, {});
  }
  ASSERT_TRUE(recorder->Close().ok());
  std::vector<std::string> names;
  for (const auto& event : RecordedEvents()) names.push_back(event["name"]);
  EXPECT_THAT(names, ::testing::ElementsAre("in 2", "TRAINING_STEP", "in 3",
                                            "TRAINING_STEP"));
  EXPECT_EQ(recorder->dropped_events(), 0);
}

TEST_F(QueuedTraceRecorderTest, SamplesAreCountersAndAreTakenAtTheEndToo) {
  int samples = 0;
  options_.sample = [&] {
    ++samples;
    return std::vector<TraceEvent>{{.name = "MEMORY",
                                    .start_ns = 7'000,
                                    .args = {{"rss_bytes", int64_t{123}}},
                                    .kind = TraceEvent::Kind::kCounter}};
  };
  auto recorder = MakeRecorder(100);
  recorder->Record(Event("soon"));  // too soon after the start for a sample
  ASSERT_TRUE(recorder->Close().ok());
  EXPECT_EQ(samples, 1);
  const nlohmann::json counter = Metadata("MEMORY");
  EXPECT_EQ(counter["ph"], "C");
  EXPECT_EQ(counter["ts"], 7.0);
  EXPECT_EQ(counter["args"]["rss_bytes"], 123);
  EXPECT_FALSE(counter.contains("dur"));
}

TEST_F(QueuedTraceRecorderTest, ArrowsStartWhereAFlowGoesOut) {
  auto recorder = MakeRecorder(100);
  recorder->Record(
      {.name = "ALLREDUCE", .flow = TraceEvent::Flow::kOut, .flow_id = 7});
  recorder->Record({.name = "ALLREDUCE_BUCKET",
                    .flow = TraceEvent::Flow::kIn,
                    .flow_id = 7});
  ASSERT_TRUE(recorder->Close().ok());
  const auto events = RecordedEvents();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0]["bind_id"], "0x40000000007");  // of rank 3
  EXPECT_EQ(events[1]["bind_id"], events[0]["bind_id"]);
  EXPECT_EQ(events[0]["flow_out"], true);
  EXPECT_EQ(events[1]["flow_in"], true);
}

TEST_F(QueuedTraceRecorderTest, CloseReturnsTheFirstWriteError) {
  auto recorder = MakeRecorder(100);
  sink_->FailWith(absl::ResourceExhaustedError("disk full"));
  recorder->Record(Event("lost"));
  EXPECT_EQ(recorder->Close(), absl::ResourceExhaustedError("disk full"));
  EXPECT_EQ(recorder->dropped_events(), 1);
}

TEST_F(QueuedTraceRecorderTest, WithoutMemoryEventsAreDroppedAndCounted) {
  options_.sample = []() -> std::vector<TraceEvent> { throw std::bad_alloc(); };
  auto recorder = MakeRecorder(/*max_queued_events=*/16);
  sink_->ShutGate();
  recorder->Record({.name = "lost"});
  sink_->WaitForWriterAtGate();
  sink_->HaveNoMemory();
  sink_->OpenGate();
  while (recorder->dropped_events() == 0) std::this_thread::yield();
  recorder->Record({.name = "kept"});
  EXPECT_TRUE(absl::IsResourceExhausted(recorder->Close()));
  EXPECT_EQ(recorder->dropped_events(), 1);
  ASSERT_THAT(RecordedEvents(), SizeIs(1));
  EXPECT_EQ(RecordedEvents()[0]["name"], "kept");
}

TEST_F(QueuedTraceRecorderTest, HeaderThatCannotBeWrittenFailsCreate) {
  sink_->FailWith(absl::ResourceExhaustedError("disk full"));
  const auto recorder = TraceRecorder::Create(
      TraceRecorder::Options(), clock_, std::make_unique<FakeSink>(sink_));
  EXPECT_EQ(recorder.status(), absl::ResourceExhaustedError("disk full"));
}

}  // namespace
}  // namespace hvdlite::timeline
