// Traces as other programs write them: Horovod's timelines and exports of
// PyTorch's profiler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/fakes/test_files.h"
#include "timeline/diagnose/step_analysis.h"
#include "timeline/diagnose/trace_summary.h"
#include "timeline/read/trace_file.h"
#include "timeline/read/trace_reader.h"

namespace hvdlite::timeline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ForeignTraceTest : public ::testing::Test {
 protected:
  Trace MustRead(const std::string& path) {
    absl::StatusOr<Trace> trace = ReadTrace(path);
    EXPECT_TRUE(trace.ok()) << trace.status();
    return trace.ok() ? *std::move(trace) : Trace();
  }

  static std::vector<std::string> Names(const Trace& trace) {
    std::vector<std::string> names;
    for (const NameSummary& name : Summarize(trace).names) {
      names.push_back(absl::StrCat(name.name, " ", name.occurrences, " ",
                                   name.wall_ns / 1000));
    }
    return names;
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_.File("trace.json");
};

TEST_F(ForeignTraceTest, HorovodsTicksAndCyclesAreNotWork) {
  WriteFile(path_, R"([
{"ph": "i", "name": "CYCLE_START", "ts": 1000, "s": "g"},
{"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 1200, "pid": 1},
{"ph": "X", "name": "0", "ts": 1200, "pid": 1, "dur": 0},
{"ph": "X", "name": "1", "ts": 1900, "pid": 1, "dur": 0},
{"ph": "E", "ts": 2000, "pid": 1},
{"ph": "X", "name": "CYCLE_START", "ts": 3000, "pid": 0, "dur": 0},
)");
  const Trace trace = MustRead(path_);
  EXPECT_THAT(trace.warnings, IsEmpty());
  EXPECT_THAT(Names(trace), ElementsAre("NEGOTIATE_ALLREDUCE 1 800"));
  EXPECT_EQ(Summarize(trace).totals.occurrences, 1);
  EXPECT_EQ(SummarizeByProcess(trace).size(), 1u);
}

TEST_F(ForeignTraceTest, EventsNamedByNumbersThatTakeTimeAreWork) {
  WriteFile(path_, R"([
    {"ph":"X","name":"0","ts":1,"dur":5,"pid":1},
    {"ph":"X","name":"mark","ts":1,"dur":0,"pid":1},
    {"ph":"X","name":"","ts":1,"dur":0,"pid":1}
  ])");
  EXPECT_THAT(Names(MustRead(path_)), ElementsAre(" 1 0", "0 1 5", "mark 1 0"));
}

// A trace of torch.profiler's export_chrome_trace(), with record_shapes and
// with_stack.
std::string ProfilerEvents(int steps) {
  std::string text = R"({
  "schemaVersion": 1,
  "deviceProperties": [
  ],
  "with_stack": 1, "record_shapes": 1,
  "trace_id": "5F8E7C1A0B5D4E0E9D8A8B9F3A2C1D0E",
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1700000000000000000,
  "traceEvents": [
)";
  for (int step = 1; step <= steps; ++step) {
    const std::string time_us =
        absl::StrCat(int64_t{1'700'000'000'000'000} + step * 1000);
    absl::StrAppend(&text, R"(  {
    "ph": "X", "cat": "user_annotation", "name": "ProfilerStep#)",
                    step, R"(", "pid": 4242, "tid": 4242,
    "ts": )",
                    time_us, R"(.125, "dur": 900.500,
    "args": {
      "External id": )",
                    step, R"(,"Record function id": 0, "Ev Idx": 0
    }
  },
  {
    "ph": "X", "cat": "cpu_op", "name": "aten::conv2d", "pid": 4242, "tid": 4242,
    "ts": )",
                    time_us, R"(.625, "dur": 400.250,
    "args": {
      "External id": 7,"Input Dims": [[8, 3, 32, 32], [64, 3, 3, 3], [], [[1, 1], []]], "Input type": ["float", "float", "", "ScalarList"], "Concrete Inputs": ["", "", "[]"], "Call stack": "train.py(12): <module>;nn/conv.py(450): \"forward\""
    }
  },
  {
    "ph": "s", "id": )",
                    step, R"(, "pid": 4242, "tid": 4242, "ts": )", time_us,
                    R"(.700,
    "cat": "fwdbwd", "name": "fwdbwd"
  },
)");
  }
  return text + R"json(  {
    "name": "process_name", "ph": "M", "ts": 1700000000000000.000, "pid": 4242, "tid": 0,
    "args": {
      "name": "python3"
    }
  },
  {
    "ph": "X", "cat": "Trace", "ts": 1700000000000000.000, "dur": 5000.000,
    "pid": "Spans", "tid": "PyTorch Profiler", "name": "PyTorch Profiler (0)",
    "args": {
      "Op count": 0
    }
  },
  {
    "name": "Record Window End", "ph": "i", "s": "g",
    "pid": "", "tid": "", "ts": 1700000000005000.000
  }
  ],
  "traceName": "trace.json"
})json";
}

TEST_F(ForeignTraceTest, ReadsExportsOfTheProfiler) {
  WriteFile(path_, ProfilerEvents(2));
  const Trace trace = MustRead(path_);
  EXPECT_THAT(trace.warnings, IsEmpty());
  EXPECT_THAT(Names(trace),
              ElementsAre("ProfilerStep#1 1 900", "ProfilerStep#2 1 900",
                          "PyTorch Profiler (0) 1 5000", "aten::conv2d 2 800"));
  EXPECT_EQ(trace.processes.at(4242).name, "python3");
  EXPECT_EQ(trace.processes.size(), 2u);
  // The time is exact, although a double could not hold it.
  EXPECT_EQ(trace.slices[1].start_ns, 1'700'000'000'001'000'625);
  EXPECT_EQ(AnalyzeSteps(trace).source, StepSource::kProfiler);
}

TEST_F(ForeignTraceTest, ReadsLargeGzippedExports) {
  const std::string packed = directory_.File("trace.json.gz");
  auto file = OutputFile::Open(packed);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append(ProfilerEvents(20000)).ok());
  ASSERT_TRUE((*file)->Commit().ok());
  const Trace trace = MustRead(packed);
  EXPECT_THAT(trace.warnings, IsEmpty());
  EXPECT_EQ(trace.slices.size(), 40001u);
  EXPECT_EQ(AnalyzeSteps(trace).steps.size(), 20000u);
}

}  // namespace
}  // namespace hvdlite::timeline
