#include "timeline/record/resource_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/testing/fakes/test_files.h"

namespace hvdlite::timeline {
namespace {

using ::testing::Contains;
using ::testing::Key;
using ::testing::Not;

// Threads of a fake process.
class ResourceSamplerTest : public ::testing::Test {
 protected:
  void SetThread(int id, const std::string& name, int64_t cpu_us,
                 int64_t delay_us, int involuntary = 0) {
    const std::string directory = directory_.File(absl::StrCat("task/", id));
    std::filesystem::create_directories(directory);
    std::ofstream(directory + "/comm") << name << "\n";
    std::ofstream(directory + "/schedstat")
        << cpu_us * 1000 << " " << delay_us * 1000 << " 17\n";
    std::ofstream(directory + "/status")
        << "Name:\t" << name << "\nvoluntary_ctxt_switches:\t9\n"
        << "nonvoluntary_ctxt_switches:\t" << involuntary << "\n";
  }

  // Values by counter and name.
  std::map<std::string, std::map<std::string, int64_t>> Sample(int64_t now_us) {
    std::map<std::string, std::map<std::string, int64_t>> values;
    for (const TraceEvent& event : sampler_.Sample(now_us * 1000)) {
      EXPECT_EQ(event.kind, TraceEvent::Kind::kCounter);
      EXPECT_EQ(event.start_ns, now_us * 1000);
      for (const auto& [name, value] : event.args) {
        values[event.name][name] = std::get<int64_t>(value);
      }
    }
    return values;
  }

  const TemporaryDirectory directory_;
  ResourceSampler sampler_{/*main_thread=*/10, directory_.File("")};
};

TEST_F(ResourceSamplerTest, CountsEachKindOfThreadSinceTheSampleBefore) {
  SetThread(10, "train", 1000, 10, 5);
  SetThread(11, "hvdlite", 200, 20, 7);
  SetThread(12, "hvdlite-trace", 900, 900);
  SetThread(13, "train", 3000, 30);
  Sample(100'000);
  SetThread(10, "train", 51'000, 110, 6);
  SetThread(11, "hvdlite", 250, 5020, 10);
  SetThread(13, "train", 3500, 30);
  auto values = Sample(200'000);
  EXPECT_EQ(values["PROGRESS_THREAD"]["cpu_us"], 50);
  EXPECT_EQ(values["PROGRESS_THREAD"]["delay_us"], 5000);
  EXPECT_EQ(values["PROGRESS_THREAD"]["involuntary"], 3);
  EXPECT_EQ(values["MAIN_THREAD"]["cpu_us"], 50'000);
  EXPECT_EQ(values["MAIN_THREAD"]["delay_us"], 100);
  EXPECT_EQ(values["MAIN_THREAD"]["involuntary"], 1);
  EXPECT_EQ(values["COMPUTE_THREADS"]["cpu_us"], 50'500);
  EXPECT_EQ(values["COMPUTE_THREADS"]["delay_us"], 100);
  EXPECT_EQ(values["COMPUTE_THREADS"]["threads"], 1);  // 13: 0.5 ms of 100 ms
}

TEST_F(ResourceSamplerTest, EndedThreadIsForgotten) {
  SetThread(10, "train", 1000, 0);
  SetThread(13, "train", 3000, 30);
  Sample(1000);
  std::filesystem::remove_all(directory_.File("task/13"));
  EXPECT_EQ(Sample(2000)["COMPUTE_THREADS"]["cpu_us"], 0);
  SetThread(13, "train", 70, 0);  // another thread with the same number
  EXPECT_EQ(Sample(3000)["COMPUTE_THREADS"]["cpu_us"], 70);
}

TEST_F(ResourceSamplerTest, UnknownValuesAreLeftOut) {
  const auto values = Sample(1000);
  EXPECT_THAT(values, Not(Contains(Key("PROGRESS_THREAD"))));
  EXPECT_THAT(values, Not(Contains(Key("COMPUTE_THREADS"))));
}

TEST_F(ResourceSamplerTest, SamplesThisProcess) {
  ResourceSampler sampler(static_cast<pid_t>(gettid()));
  std::map<std::string, int64_t> memory;
  for (const TraceEvent& event : sampler.Sample(1)) {
    if (event.name != "MEMORY") continue;
    for (const auto& [name, value] : event.args) {
      memory[name] = std::get<int64_t>(value);
    }
  }
  EXPECT_GT(memory["rss_bytes"], 100'000);
  EXPECT_GT(memory["minor_faults"], 0);
}

}  // namespace
}  // namespace hvdlite::timeline
