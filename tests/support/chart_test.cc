#include "support/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "support/html_page.h"

namespace hvdlite::support {
namespace {

using ::testing::Contains;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// The stroke colours of all curves, in order.
std::vector<std::string> ColoursOf(const std::string& svg) {
  std::vector<std::string> colours;
  const std::regex stroke("<polyline class=\"curve\" stroke=\"([^\"]*)\"");
  for (std::sregex_iterator at(svg.begin(), svg.end(), stroke), end; at != end;
       ++at) {
    colours.push_back((*at)[1]);
  }
  return colours;
}

// Draws a chart of these curves.
std::string SvgOf(std::vector<Curve> curves) {
  return ChartSvg({.title = "t", .x_label = "x", .curves = std::move(curves)});
}

TEST(ChartTest, EveryCurveHasItsOwnColour) {
  const std::vector<std::string> colours =
      ColoursOf(SvgOf(std::vector<Curve>(40, {.name = "c", .values = {1, 2}})));
  EXPECT_THAT(colours, SizeIs(40));
  EXPECT_THAT(std::set<std::string>(colours.begin(), colours.end()),
              SizeIs(40));
}

struct Point {
  double x = 0;
  double y = 0;
};

double NumberIn(absl::string_view text) {
  double number = 0;
  EXPECT_TRUE(absl::SimpleAtod(text, &number)) << text;
  return number;
}

// The points of curve `index`.
std::vector<Point> PointsOf(const std::string& svg, size_t index = 0) {
  size_t from = 0;
  for (size_t i = 0; i <= index; ++i) from = svg.find("points=\"", from) + 8;
  const std::string points = svg.substr(from, svg.find('"', from) - from);
  std::vector<Point> found;
  for (const auto pair : absl::StrSplit(points, ' ', absl::SkipEmpty())) {
    const std::vector<absl::string_view> xy = absl::StrSplit(pair, ',');
    found.push_back({NumberIn(xy[0]), NumberIn(xy[1])});
  }
  return found;
}

struct Label {
  std::string text;
  Point end;  // left, middle or right end of the text
  std::string anchor;
};

std::vector<Label> LabelsOf(const std::string& svg) {
  const std::regex label(
      "<text x=\"([^\"]*)\" y=\"([^\"]*)\" text-anchor=\"(\\w+)\">([^<]*)<");
  std::vector<Label> labels;
  for (std::sregex_iterator i(svg.begin(), svg.end(), label), end; i != end;
       ++i) {
    labels.push_back(
        {(*i)[4], {NumberIn((*i)[1].str()), NumberIn((*i)[2].str())}, (*i)[3]});
  }
  return labels;
}

std::vector<std::string> TextsOf(const std::string& svg) {
  std::vector<std::string> texts;
  for (const Label& label : LabelsOf(svg)) texts.push_back(label.text);
  return texts;
}

// Size of the picture.
Point SizeOf(const std::string& svg) {
  std::smatch size;
  EXPECT_TRUE(std::regex_search(
      svg, size, std::regex("width=\"(\\d+)\" height=\"(\\d+)\"")));
  return {NumberIn(size[1].str()), NumberIn(size[2].str())};
}

TEST(RoundTicksTest, LinearTicksAreOneTwoOrFiveTimesAPowerOfTen) {
  EXPECT_THAT(RoundTicks(0, 7.3, false, 7), ElementsAre(0, 2, 4, 6, 8));
  EXPECT_THAT(RoundTicks(0.13, 0.38, false, 7),
              ElementsAre(DoubleNear(.1, 1e-9), DoubleNear(.15, 1e-9),
                          DoubleNear(.2, 1e-9), DoubleNear(.25, 1e-9),
                          DoubleNear(.3, 1e-9), DoubleNear(.35, 1e-9),
                          DoubleNear(.4, 1e-9)));
  EXPECT_THAT(RoundTicks(-30, 180, false, 7),
              ElementsAre(-50, 0, 50, 100, 150, 200));
  EXPECT_THAT(RoundTicks(117, 1599, true, 7),
              ElementsAre(100, 200, 500, 1000, 2000));
  EXPECT_THAT(RoundTicks(1, 16, true, 7), ElementsAre(1, 2, 5, 10, 20));
}

TEST(RoundTicksTest, LongLogarithmicAxisHasPowersOfTen) {
  EXPECT_THAT(RoundTicks(3, 2e4, true, 7),
              ElementsAre(1, 10, 100, 1e3, 1e4, 1e5));
  const std::vector<double> ticks = RoundTicks(1, 1e12, true, 7);
  EXPECT_LE(ticks.size(), 7u);
  EXPECT_EQ(ticks.front(), 1);
  EXPECT_GE(ticks.back(), 1e12);
}

TEST(RoundTicksTest, ShortLogarithmicAxisHasLinearTicks) {
  EXPECT_THAT(RoundTicks(140, 190, true, 7),
              ElementsAre(140, 150, 160, 170, 180, 190));
}

TEST(ChartTest, CurvesFillThePictureBetweenRoundNumbers) {
  const std::string svg =
      ChartSvg({.title = "loss",
                .x_label = "epoch",
                .y_label = "nats",
                .curves = {{"train", {3, 2, 1}}, {"test", {2, 2}}}});
  const std::vector<Point> points = PointsOf(svg);
  ASSERT_THAT(points, SizeIs(3));
  EXPECT_NEAR(points[1].x, (points[0].x + points[2].x) / 2, 0.1);
  EXPECT_NEAR(points[1].y, (points[0].y + points[2].y) / 2, 0.1);
  EXPECT_LT(points[0].y, points[2].y);
  EXPECT_THAT(TextsOf(svg),
              ElementsAre("nats", "1", "1.5", "2", "2.5", "3", "1", "2", "3",
                          "epoch", "train", "test"));
}

TEST(ChartTest, LabelsAndNamesAreInsideThePictureBelowTheCurves) {
  const std::string name(120, 'n');
  const std::string svg = ChartSvg(
      {.title = "t",
       .x_label = "ranks",
       .y_label = "items/s, all ranks together",
       .curves = {{.name = name, .values = {1.25e7, 9e7}, .x = {1, 100000}},
                  {.name = "b", .values = {}}},
       .log_x = true});
  const Point size = SizeOf(svg);
  double lowest = 0;
  for (const Point& point : PointsOf(svg)) lowest = std::max(lowest, point.y);
  for (const Label& label : LabelsOf(svg)) {
    const double width = 7.0 * static_cast<double>(label.text.size());
    const double left = label.end.x - (label.anchor == "end"      ? width
                                       : label.anchor == "middle" ? width / 2
                                                                  : 0);
    EXPECT_GE(left, 0) << label.text;
    EXPECT_LE(left + width, size.x) << label.text;
    EXPECT_LT(label.end.y, size.y) << label.text;
    if (label.text == name) {
      EXPECT_GT(label.end.y, lowest);
    }
  }
  EXPECT_THAT(TextsOf(svg), Contains("20M"));
}

TEST(ChartTest, SingleCurveHasNoName) {
  EXPECT_THAT(TextsOf(SvgOf({{"only", {1, 2}}})), Not(Contains("only")));
}

TEST(ChartTest, LabelsWithoutRoomAreLeftOut) {
  Curve curve = {.name = "c", .values = {}};
  for (int n = 1; n <= 100; ++n) {
    curve.values.push_back(n);
    curve.x.push_back(n);
  }
  const std::vector<std::string> texts = TextsOf(SvgOf({curve}));
  EXPECT_LT(texts.size(), 60u);
  EXPECT_THAT(texts, Contains("100"));
}

TEST(ChartTest, IntervalsHaveWholeNumbers) {
  const std::string svg =
      ChartSvg({.title = "t",
                .x_label = "interval",
                .y_label = "",
                .curves = {{"c", std::vector<double>(60, 1.0)}},
                .y_from_zero = true});
  EXPECT_THAT(TextsOf(svg), Contains("50"));
  EXPECT_THAT(TextsOf(svg), Not(Contains("0.5k")));
  EXPECT_THAT(PointsOf(svg), SizeIs(60));
}

TEST(ChartTest, ValuesThatAreNotFiniteAreLeftOut) {
  const std::string svg = SvgOf({{"train", {3, NAN, 1}}});
  EXPECT_THAT(PointsOf(svg), SizeIs(2));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(ChartTest, ChartWithOneOrNoValueIsDrawn) {
  EXPECT_THAT(PointsOf(SvgOf({{"c", {7}}})), SizeIs(1));
  const std::string empty = SvgOf({{"c", {}}});
  EXPECT_THAT(empty, HasSubstr("points=\"\""));
  EXPECT_THAT(empty, Not(HasSubstr("nan")));
  // Numbers so close that they have no distance on an axis.
  EXPECT_THAT(SvgOf({{"c", {1e16, 1e16 + 2}}, {"d", {5e-324}}}),
              Not(HasSubstr("nan")));
}

TEST(ChartTest, ValuesAreDrawnAtTheirX) {
  const std::string svg =
      SvgOf({{.name = "c", .values = {1, 2, 3}, .x = {1, 2, 5}}});
  const std::vector<Point> points = PointsOf(svg);
  ASSERT_THAT(points, SizeIs(3));
  EXPECT_NEAR((points[1].x - points[0].x) * 4, points[2].x - points[0].x, 0.5);
  EXPECT_THAT(TextsOf(svg), Contains("5"));
}

TEST(ChartTest, DoublingIsAConstantDistanceOnLogarithmicAxes) {
  // A logarithmic axis cannot show 0.
  const std::vector<Point> points = PointsOf(ChartSvg(
      {.title = "t",
       .x_label = "ranks",
       .curves = {{.name = "c", .values = {1, 2, 4, 0}, .x = {1, 2, 4, 0}}},
       .log_x = true,
       .log_y = true}));
  ASSERT_THAT(points, SizeIs(3));
  EXPECT_NEAR(points[2].x - points[1].x, points[1].x - points[0].x, 0.2);
  EXPECT_NEAR(points[2].y - points[1].y, points[1].y - points[0].y, 0.2);
}

TEST(ChartTest, ErrorBarsAreDrawnAndFitIntoThePicture) {
  const std::string svg = SvgOf({{.name = "c",
                                  .values = {2, 3},
                                  .x = {1, 2},
                                  .low = {1, NAN},
                                  .high = {5, NAN}}});
  std::smatch bar;
  ASSERT_TRUE(std::regex_search(
      svg, bar,
      std::regex("d=\"M[\\d.]+,([\\d.]+)H[\\d.]+M[\\d.]+,([\\d.]+)H")));
  EXPECT_GT(NumberIn(bar[1].str()), PointsOf(svg)[0].y);
  EXPECT_GT(NumberIn(bar[2].str()), 0);
  EXPECT_LT(NumberIn(bar[2].str()), PointsOf(svg)[1].y);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(ChartTest, DashedCurvesHaveNoDots) {
  const std::string svg =
      SvgOf({{.name = "ideal", .values = {1, 2}, .dashed = true}});
  EXPECT_THAT(svg, HasSubstr("stroke-dasharray"));
  EXPECT_THAT(svg, Not(HasSubstr("<circle")));
}

TEST(ChartTest, AxisCanBeginAtZero) {
  EXPECT_THAT(TextsOf(ChartSvg({.title = "t",
                                .x_label = "ranks",
                                .curves = {{.name = "c", .values = {91, 92}}},
                                .y_from_zero = true})),
              Contains("0"));
}

TEST(ChartTest, DocumentIsStandaloneWithATitle) {
  const std::string document =
      ChartDocument({.title = "a<b", .x_label = "x", .curves = {}});
  EXPECT_EQ(document.find("<svg xmlns="), 0u);
  EXPECT_THAT(document, HasSubstr("<title>a&lt;b</title>"));
  EXPECT_THAT(document, HasSubstr("<style>"));
  EXPECT_THAT(TextsOf(document), Contains("a&lt;b"));
}

TEST(HtmlPageTest, TextIsEscapedAndPageIsSelfContained) {
  const std::string page =
      HtmlPage("a<b", PropertyTable("p", {{"\"x\"", "& y"}}));
  EXPECT_THAT(page, HasSubstr("<title>a&lt;b</title>"));
  EXPECT_THAT(page, HasSubstr("<th>&quot;x&quot;</th><td>&amp; y</td>"));
  EXPECT_THAT(page, Not(HasSubstr("http")));
  EXPECT_EQ(PropertyTable("p", {}), "");
}

}  // namespace
}  // namespace hvdlite::support
