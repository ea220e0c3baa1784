#include "trainers/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/input_error.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "trainers/resnet50_flags.h"

namespace hvdlite::trainers {
namespace {

using ::testing::HasSubstr;

TEST(IntervalMeterTest, ExcludedTimeDoesNotCount) {
  double now = 100;
  IntervalMeter meter([&] { return now; });
  meter.Start();
  meter.AddStep(10, 1);
  meter.LeaveOut(3);  // a checkpoint
  now += 5;
  meter.Finish();
  EXPECT_DOUBLE_EQ(meter.seconds(), 2);
  EXPECT_DOUBLE_EQ(meter.wall_seconds(), 5);
  // The exclusion does not apply to the next interval. Time between intervals
  // never counts.
  now += 7;
  meter.Start();
  meter.AddStep(10, 1);
  now += 4;
  meter.Finish();
  EXPECT_DOUBLE_EQ(meter.seconds(), 6);
  EXPECT_DOUBLE_EQ(meter.wall_seconds(), 9);
  EXPECT_EQ(meter.items_per_second(), (std::vector<double>{5, 2.5}));
}

TEST(ReportTest, HasSettingsSpeedLossAndDigests) {
  const TemporaryDirectory directory;
  ResNet50Flags flags;
  flags.arch = "resnet18";
  Report report = {.program = "train_resnet50",
                   .settings = ToJson(flags),
                   .items = "images",
                   .data = {{"test images", "unchanged"}},
                   .world_size = 2,
                   .threads_per_rank = 3,
                   .steps = 20,
                   .seconds = 4,
                   .items_per_second = {10, 30},
                   .losses = {2.5, 1.5},
                   .evaluation = Evaluation{0.5, 0.75, 100},
                   .accuracies = {0.25, 0.75},
                   .parameter_digests = {-1, -1}};
  const std::string file = directory / "report.json";
  WriteReport(file, report);
  const auto json = nlohmann::json::parse(std::ifstream(file));
  EXPECT_EQ(json["settings"]["arch"], "resnet18");
  EXPECT_EQ(json["data"]["test images"], "unchanged");
  EXPECT_EQ(json["world_size"], 2);
  EXPECT_EQ(json["threads_per_rank"], 3);
  EXPECT_EQ(json["images_per_second"]["median"], 20);
  EXPECT_EQ(json["loss"]["last"], 1.5);
  EXPECT_EQ(json["evaluation"]["accuracy"], 0.75);
  EXPECT_EQ(json["parameter_digests"][0], "ffffffffffffffff");
  EXPECT_EQ(json["parameters_identical"], true);
  EXPECT_FALSE(json.contains("unreadable"));

  report.parameter_digests = {-1, 5};
  WriteReport(file, report);
  EXPECT_EQ(nlohmann::json::parse(std::ifstream(file))["parameters_identical"],
            false);
  EXPECT_THAT(
      [&] { WriteReport("/nonexistent/r.json", report); },
      ::testing::ThrowsMessage<support::InputError>(HasSubstr("r.json")));
}

TEST(ReportTest, PageHasAllCurvesAndTables) {
  const TemporaryDirectory directory;
  Report report = {.program = "train_x",
                   .settings = "{\"lr\": 1, \"resume\": \"\"}",
                   .items = "apples",
                   .data = {{"test apples", "peeled"}},
                   .steps = 7,
                   .seconds = 12.25,
                   .items_per_second = {19000, 20624},
                   .losses = {2.5, 1.5},
                   .replaced = 3,
                   .evaluation = Evaluation{0.5, 0.75, 100, 2},
                   .accuracies = {0.25, 0.75},
                   .test_losses = {0.75, 0.5},
                   .parameter_digests = {},
                   .machine = {{"processor", "Xeon <1>"}}};
  const std::string file = directory / "report.html";
  WriteHtmlReport(file, report);
  std::ostringstream page;
  page << std::ifstream(file).rdbuf();
  for (const char* part :
       {"train_x", "<h2>Loss</h2>", ">test</text>", "apples/s, all ranks",
        "<h2>Test accuracy</h2>", "<th>lr</th><td>1</td>",
        "<th>resume</th><td>none</td>", "<th>processor</th><td>Xeon &lt;1&gt;",
        "<th>rate</th><td>19812 apples/s, ", "from 19000 to 20624",
        "<th>world</th><td>1 rank of 1 thread<",
        "<th>unreadable</th><td>3 training apples replaced by others, 2 test "
        "apples skipped<",
        "<h2>Data</h2>", "<th>test apples</th><td>peeled</td>",
        "<th>test loss</th><td>0.5</td>", "<th>time</th><td>12.2 s"}) {
    EXPECT_THAT(page.str(), HasSubstr(part));
  }
  WriteReport(directory / "report.json", report);
  const auto json =
      nlohmann::json::parse(std::ifstream(directory / "report.json"));
  EXPECT_EQ(json["machine"]["processor"], "Xeon <1>");
  EXPECT_EQ(json["test_losses"].size(), 2);
  EXPECT_EQ(json["unreadable"]["replaced"], 3);
  EXPECT_EQ(json["unreadable"]["left_out"], 2);
  EXPECT_THAT(
      [&] { WriteHtmlReport("/nonexistent/r.html", report); },
      ::testing::ThrowsMessage<support::InputError>(HasSubstr("r.html")));
}

}  // namespace
}  // namespace hvdlite::trainers
