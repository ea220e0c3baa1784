#include "trainers/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace hvdlite::trainers {
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

}  // namespace
}  // namespace hvdlite::trainers
