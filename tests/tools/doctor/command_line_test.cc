#include "tools/doctor/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/doctor/doctor.h"

namespace hvdlite::doctor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::variant<Flags, EarlyEnd> Parsed(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "hvdlite_doctor");
  return ParseFlags(static_cast<int>(arguments.size()), arguments.data());
}

TEST(CommandLineTest, ReadsFlags) {
  const auto parsed = Parsed({"--check", "blas", "--check", "openmp",
                              "--skip-slow", "--json", "f", "--program", "p"});
  ASSERT_TRUE(std::holds_alternative<Flags>(parsed));
  const Flags& flags = std::get<Flags>(parsed);
  EXPECT_THAT(flags.checks, ElementsAre("blas", "openmp"));
  EXPECT_TRUE(flags.skip_slow);
  EXPECT_EQ(flags.json, "f");
  EXPECT_EQ(flags.program, "p");
}

TEST(CommandLineTest, WrongFlagsEndWithTwo) {
  for (const std::vector<const char*>& arguments :
       {std::vector<const char*>{"--chekc", "blas"},
        std::vector<const char*>{"--check", "blass"},
        std::vector<const char*>{"--check", "links", "--skip-slow"},
        std::vector<const char*>{"--watch", "0"},
        std::vector<const char*>{"--watch", "1", "--json", "-"},
        std::vector<const char*>{"blas"}}) {
    const auto parsed = Parsed(arguments);
    ASSERT_TRUE(std::holds_alternative<EarlyEnd>(parsed));
    EXPECT_EQ(std::get<EarlyEnd>(parsed).exit_code, 2);
  }
}

TEST(CommandLineTest, HelpNamesEveryCheck) {
  const auto parsed = Parsed({"--help"});
  ASSERT_TRUE(std::holds_alternative<EarlyEnd>(parsed));
  EXPECT_EQ(std::get<EarlyEnd>(parsed).exit_code, 0);
  for (const Check& check : AllChecks()) {
    EXPECT_THAT(std::get<EarlyEnd>(parsed).text, HasSubstr(check.name));
  }
}

TEST(CommandLineTest, VersionIsTheProjects) {
  const auto parsed = Parsed({"--version"});
  ASSERT_TRUE(std::holds_alternative<EarlyEnd>(parsed));
  EXPECT_EQ(std::get<EarlyEnd>(parsed).exit_code, 0);
  EXPECT_THAT(std::get<EarlyEnd>(parsed).text,
              ::testing::MatchesRegex(
                  "hvdlite_doctor \\(hvdlite\\) [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(ChosenChecksTest, LeavesOutWhatIsSlowOrNotAskedFor) {
  EXPECT_EQ(ChosenChecks({}, false).size(), AllChecks().size());
  for (const Check& check : ChosenChecks({}, true)) {
    EXPECT_FALSE(check.slow) << check.name;
  }
  const std::vector<Check> two = ChosenChecks({"openmp", "blas"}, false);
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[0].name, "blas");
  EXPECT_EQ(two[1].name, "openmp");
}

}  // namespace
}  // namespace hvdlite::doctor
