#include "timeline/record/trace_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/testing/fakes/test_files.h"
#include "timeline/read/trace_reader.h"
#include "timeline/record/trace_format.h"

namespace hvdlite::timeline {
namespace {

const base::SteadyClock kRecorderClock;

using ::testing::HasSubstr;

TraceRecorder::Options OptionsFor(const std::string& path, int rank, int size) {
  TraceRecorder::Options options;
  options.path = path;
  options.rank = rank;
  options.size = size;
  options.host = "node1";
  return options;
}

TEST(TraceRecorderTest, ClosedRankFileIsValidJson) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("trace.json");
  auto recorder = TraceRecorder::Open(OptionsFor(path, 1, 2), kRecorderClock);
  ASSERT_TRUE(recorder.ok()) << recorder.status();
  (*recorder)->Record({.name = "ALLREDUCE", .duration_ns = 1000, .args = {}});
  ASSERT_TRUE((*recorder)->Close().ok());
  const std::string text = ReadWholeFile(path + ".rank00001");
  EXPECT_TRUE(nlohmann::json::accept(text)) << text;
  EXPECT_EQ(text.substr(0, 2), "[\n");
}

TEST(TraceRecorderTest, DeviceIsRefusedAndNothingIsWrittenBesideIt) {
  const TemporaryDirectory directory;
  const std::string device = directory.File("null");
  std::filesystem::create_symlink("/dev/null", device);
  const auto recorder =
      TraceRecorder::Open(OptionsFor(device, 0, 1), kRecorderClock);
  EXPECT_EQ(recorder.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(recorder.status().message()),
              HasSubstr(device + ": it is not a regular file"));
  EXPECT_FALSE(std::filesystem::exists(TracePartPath(device, 0)));
}

TEST(TraceRecorderTest, ErrorNamesTheFileThatCannotBeCreated) {
  const auto recorder = TraceRecorder::Open(
      OptionsFor("/nonexistent/trace.json", 0, 1), kRecorderClock);
  EXPECT_EQ(recorder.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(recorder.status().message()),
              HasSubstr("/nonexistent/trace.json.rank00000"));
}

TEST(TraceRecorderTest, RankZeroRemovesFilesOfAnEarlierRun) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("trace.json");
  for (const char* name :
       {"trace.json", "trace.json.rank00000", "trace.json.rank00001",
        "trace.json.rank00002", "trace.json.rank12345", "trace.json.rank2"}) {
    WriteFile(directory.File(name), "earlier");
  }
  ASSERT_TRUE(TraceRecorder::Open(OptionsFor(path, 0, 2), kRecorderClock).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_NE(ReadWholeFile(TracePartPath(path, 0)), "earlier");
  EXPECT_EQ(ReadWholeFile(TracePartPath(path, 1)), "earlier");
  EXPECT_FALSE(std::filesystem::exists(TracePartPath(path, 2)));
  EXPECT_FALSE(std::filesystem::exists(TracePartPath(path, 12345)));
  EXPECT_EQ(ReadWholeFile(directory.File("trace.json.rank2")), "earlier");
}

TEST(AppendFileTest, FailedAppendLeavesWholeLines) {
  const TemporaryDirectory directory;
  const std::string path = directory.File("part");
  auto file = OpenAppendFile(path);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Append("first line\n").ok());

  // No file of this process may grow beyond 1 KB: write(2) stops there, then
  // fails. SIGXFSZ would end this process.
  rlimit saved;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &saved), 0);
  rlimit limited = saved;
  limited.rlim_cur = 1024;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limited), 0);
  const absl::Status status = (*file)->Append(std::string(5000, 'x') + "\n");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &saved), 0);

  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  EXPECT_EQ(ReadWholeFile(path), "first line\n");
  EXPECT_TRUE((*file)->Append("second line\n").ok());
  EXPECT_EQ(ReadWholeFile(path), "first line\nsecond line\n");
}

}  // namespace
}  // namespace hvdlite::timeline
