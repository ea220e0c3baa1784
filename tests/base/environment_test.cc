#include "base/environment.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvdlite::base {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST(ParseBytesTest, UnitsArePowersOf1024) {
  EXPECT_EQ(ParseBytes("0").value(), 0);
  EXPECT_EQ(ParseBytes("1048576").value(), 1048576);
  EXPECT_EQ(ParseBytes("64M").value(), 64 << 20);
  EXPECT_EQ(ParseBytes("64MiB").value(), 64 << 20);
  EXPECT_EQ(ParseBytes("64mb").value(), 64 << 20);
  EXPECT_EQ(ParseBytes("1.5k").value(), 1536);
  EXPECT_EQ(ParseBytes("2G").value(), int64_t{2} << 30);
}

TEST(ParseBytesTest, InvalidTextIsAnErrorThatShowsAnExample) {
  for (const char* text : {"", "M", "-1", "64X", "sixty", "1e30", "nan", "inf",
                           "0x10M", "64 M B"}) {
    const auto value = ParseBytes(text);
    ASSERT_FALSE(value.ok()) << text;
    EXPECT_THAT(std::string(value.status().message()),
                HasSubstr("such as 64M"));
  }
}

TEST(ParseIntegerTest, RangeIsChecked) {
  EXPECT_EQ(ParseInteger("7", 1, 8).value(), 7);
  for (const char* text : {"0", "9", "7.5", "", "7x", "99999999999999999999"}) {
    const auto value = ParseInteger(text, 1, 8);
    ASSERT_FALSE(value.ok()) << text;
    EXPECT_THAT(std::string(value.status().message()),
                HasSubstr("from 1 to 8"));
  }
}

TEST(ParseSecondsTest, FractionsAreAcceptedAndNegativesRefused) {
  EXPECT_EQ(ParseSeconds("0.5").value(), 0.5);
  EXPECT_FALSE(ParseSeconds("-1").ok());
  EXPECT_FALSE(ParseSeconds("inf").ok());
  EXPECT_FALSE(ParseSeconds("soon").ok());
}

TEST(ParseBoolTest, UsualWordsAreKnown) {
  for (const char* text : {"1", "true", "TRUE", "yes", "on", "On"}) {
    EXPECT_TRUE(ParseBool(text).value()) << text;
  }
  for (const char* text : {"0", "false", "no", "off"}) {
    EXPECT_FALSE(ParseBool(text).value()) << text;
  }
  EXPECT_FALSE(ParseBool("maybe").ok());
}

TEST(NearestNameTest, OnlyNearNamesAreOffered) {
  const std::vector<std::string> known = {"HVDLITE_TIMELINE",
                                          "HVDLITE_LOG_LEVEL"};
  EXPECT_EQ(NearestName("HVDLITE_TIMELIEN", known), "HVDLITE_TIMELINE");
  EXPECT_EQ(NearestName("HVDLITE_LOGLEVEL", known), "HVDLITE_LOG_LEVEL");
  EXPECT_EQ(NearestName("QUITE_ANOTHER_THING", known), "");
}

TEST(ProcessEnvironmentTest, ReadsVariablesOfTheProcess) {
  const Environment environment = ProcessEnvironment();
  EXPECT_TRUE(environment.get("PATH").has_value());
  EXPECT_FALSE(environment.get("HVDLITE_NO_SUCH_VARIABLE").has_value());
  EXPECT_THAT(environment.names(), Contains("PATH"));
}

TEST(EnvironmentEntriesTest, ChangesReplaceAndAdd) {
  EXPECT_THAT(EnvironmentEntries(FakeEnvironment({{"A", "1"}, {"B", "2"}}),
                                 {{"B", "3"}, {"C", "="}}),
              ::testing::ElementsAre("A=1", "B=3", "C=="));
}

}  // namespace
}  // namespace hvdlite::base
