#include "tools/support/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace hvdlite::support {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ChartTest, CurvesSpanTheWholePicture) {
  const std::string page = ChartsPage(
      "t", {}, {{"loss", "epoch", {{"train", {3, 2, 1}}, {"test", {2, 2}}}}});
  // From the top left to the bottom right: the axes leave 64..624 by 16..280.
  EXPECT_THAT(page, HasSubstr("points=\"64.0,16.0 344.0,148.0 624.0,280.0\""));
  EXPECT_THAT(page, HasSubstr("points=\"64.0,148.0 344.0,148.0\""));
  EXPECT_THAT(page, HasSubstr(">train</text>"));
  EXPECT_THAT(page, HasSubstr(">epoch</text>"));
  EXPECT_THAT(page, HasSubstr(">1.5</text>"));  // a line of the grid
}

TEST(ChartTest, ValuesThatAreNotFiniteAreLeftOut) {
  const std::string page =
      ChartsPage("t", {}, {{"loss", "epoch", {{"train", {3, NAN, 1}}}}});
  EXPECT_THAT(page, HasSubstr("points=\"64.0,16.0 624.0,280.0\""));
  EXPECT_THAT(page, Not(HasSubstr("nan")));
}

TEST(ChartTest, OneValueOrNoneIsDrawnToo) {
  EXPECT_THAT(ChartsPage("t", {}, {{"a", "x", {{"c", {7}}}}}),
              HasSubstr("<circle cx=\"64.0\" cy=\"148.0\""));
  EXPECT_THAT(ChartsPage("t", {}, {{"a", "x", {{"c", {}}}}}),
              HasSubstr("points=\"\""));
}

TEST(ChartTest, TextIsEscapedAndNothingComesFromElsewhere) {
  const std::string page = ChartsPage("a<b", {"\"x\" & y"}, {});
  EXPECT_THAT(page, HasSubstr("<title>a&lt;b</title>"));
  EXPECT_THAT(page, HasSubstr("&quot;x&quot; &amp; y"));
  EXPECT_THAT(page, Not(HasSubstr("http")));
}

TEST(ChartTest, ValuesStandWhereTheirXSays) {
  const Chart chart = {
      .title = "t",
      .x_label = "ranks",
      .curves = {{.name = "c", .values = {1, 2, 3}, .x = {1, 2, 5}}}};
  const std::string svg = ChartSvg(chart);
  EXPECT_THAT(svg, HasSubstr("points=\"64.0,280.0 204.0,148.0 624.0,16.0\""));
  for (const char* label : {">1</text>", ">2</text>", ">5</text>"}) {
    EXPECT_THAT(svg, HasSubstr(label));
  }
}

TEST(ChartTest, DoublingIsTheSameDistanceOnLogarithmicAxes) {
  const Chart chart = {
      .title = "t",
      .x_label = "ranks",
      .curves = {{.name = "c", .values = {1, 2, 4, 0}, .x = {1, 2, 4, 0}}},
      .log2_x = true,
      .log2_y = true};
  // 0 cannot be shown.
  EXPECT_THAT(ChartSvg(chart),
              HasSubstr("points=\"64.0,280.0 344.0,148.0 624.0,16.0\""));
}

TEST(ChartTest, ErrorBarsAreDrawnAndFitIntoThePicture) {
  const Chart chart = {.title = "t",
                       .x_label = "ranks",
                       .curves = {{.name = "c",
                                   .values = {2, 3},
                                   .x = {1, 2},
                                   .low = {1, NAN},
                                   .high = {5, NAN}}}};
  const std::string svg = ChartSvg(chart);
  EXPECT_THAT(svg, HasSubstr("d=\"M61.0,280.0H67.0M61.0,16.0H67.0"
                             "M64.0,280.0V16.0\""));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(ChartTest, DashedCurvesHaveNoDots) {
  const Chart chart = {
      .title = "t",
      .x_label = "ranks",
      .curves = {{.name = "ideal", .values = {1, 2}, .dashed = true}}};
  EXPECT_THAT(ChartSvg(chart), HasSubstr("stroke-dasharray"));
  EXPECT_THAT(ChartSvg(chart), Not(HasSubstr("<circle")));
}

TEST(ChartTest, AnAxisCanBeginAtZero) {
  const Chart chart = {.title = "t",
                       .x_label = "ranks",
                       .curves = {{.name = "c", .values = {1, 2}}},
                       .y_from_zero = true};
  EXPECT_THAT(ChartSvg(chart), HasSubstr("points=\"64.0,148.0 624.0,16.0\""));
}

TEST(ChartTest, ADocumentStandsAlone) {
  const std::string document =
      ChartDocument({.title = "a<b", .x_label = "x", .curves = {}});
  EXPECT_EQ(document.find("<svg xmlns="), 0u);
  EXPECT_THAT(document, HasSubstr("<title>a&lt;b</title>"));
  EXPECT_THAT(document, HasSubstr("<style>"));
}

}  // namespace
}  // namespace hvdlite::support
