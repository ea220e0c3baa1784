#include "support/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"

namespace hvdlite::support {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// "one two three ...": the given number of words.
std::string Words(int count) {
  std::string words = "one";
  for (int i = 1; i < count; ++i) words += i % 2 == 1 ? " two" : " three";
  return words;
}

class CommandLineTest : public ::testing::Test {
 protected:
  CommandLineTest() {
    AddVersion(app_);
    app_.add_option("--data-dir", text_, Words(40));
    app_.add_option("--size", number_, "Of it");
    app_.add_option("--words", text_)->type_name(Words(40) + ", two, three");
    app_.add_option("--check", text_, "Which")
        ->check(CLI::IsMember(std::vector<std::string>(20, "some_value")));
  }

  // How the parsing of these arguments ends. It must fail.
  EarlyEnd EndOf(std::vector<std::string> arguments) {
    std::reverse(arguments.begin(), arguments.end());
    try {
      app_.parse(arguments);
    } catch (const CLI::ParseError& error) {
      return EndOfParsing(app_, error);
    }
    ADD_FAILURE() << "parsing succeeded";
    return {};
  }

  CLI::App app_{Words(60), "train"};
  std::string text_;
  int number_ = 0;
};

TEST_F(CommandLineTest, HelpFitsATerminal) {
  const EarlyEnd end = EndOf({"--help"});
  EXPECT_EQ(end.exit_code, 0);
  const std::vector<std::string> lines = absl::StrSplit(end.text, '\n');
  for (const std::string& line : lines) {
    EXPECT_LE(line.size(), kHelpWidth) << line;
  }
  EXPECT_THAT(lines[0], StartsWith("one two three"));
  EXPECT_THAT(lines[1], ::testing::ContainsRegex("^(two|three)"));
  // The description of a flag continues in its column.
  const auto flag = std::find_if(
      lines.begin(), lines.end(),
      [](const std::string& line) { return line.starts_with("  --data-dir"); });
  ASSERT_NE(flag, lines.end());
  const size_t column = flag->find("one");
  EXPECT_EQ((flag + 1)->find_first_not_of(' '), column) << *(flag + 1);
  EXPECT_THAT(end.text, HasSubstr("some_value, some_value"));
  EXPECT_THAT(end.text, ::testing::Not(HasSubstr(",  two")));
  EXPECT_THAT(end.text, ::testing::ContainsRegex(", two,[ \n]+three"));
  EXPECT_THAT(end.text, HasSubstr("Of it\n"));
}

TEST_F(CommandLineTest, UnknownFlagIsNamedWithTheNearestKnownOne) {
  for (const auto& [argument, told] :
       std::vector<std::pair<std::string, std::string>>{
           {"--date-dir=x", "unknown flag --date-dir; did you mean --data-dir"},
           {"mine", "unexpected argument 'mine'"},
           {"--words", "--words needs a value: one two"},
           {"--check", "--check needs a value: {some_value,"},
           {"--size=many", "--size"}}) {
    const EarlyEnd end = EndOf({argument});
    EXPECT_EQ(end.exit_code, 2);
    EXPECT_THAT(end.text, StartsWith("train: "));
    EXPECT_THAT(end.text, HasSubstr(told));
    EXPECT_THAT(end.text, HasSubstr("Run train --help for all flags.\n"));
  }
}

TEST_F(CommandLineTest, VersionGoesToStandardOutputAndErrorsToStandardError) {
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(EndOf({"--version"}).Tell(out, err), 0);
  EXPECT_THAT(out.str(), StartsWith("train (hvdlite) "));
  EXPECT_EQ(err.str(), "");
  EXPECT_EQ(EndOf({"mine"}).Tell(out, err), 2);
  EXPECT_THAT(err.str(), HasSubstr("'mine'"));
}

}  // namespace
}  // namespace hvdlite::support
