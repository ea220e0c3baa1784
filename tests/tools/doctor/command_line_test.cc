#include "tools/doctor/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/doctor/doctor.h"

namespace hvdlite::doctor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

support::CommandLine<Flags> Parsed(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "hvdlite_doctor");
  return ParseFlags(static_cast<int>(arguments.size()), arguments.data());
}

TEST(CommandLineTest, ReadsFlags) {
  const std::optional<Flags> flags =
      Parsed({"--check", "blas", "--check", "openmp", "--skip-slow", "--json",
              "f", "--program", "p"})
          .flags;
  ASSERT_TRUE(flags.has_value());
  EXPECT_THAT(flags->checks, ElementsAre("blas", "openmp"));
  EXPECT_TRUE(flags->skip_slow);
  EXPECT_EQ(flags->json, "f");
  EXPECT_EQ(flags->program, "p");
}

TEST(CommandLineTest, WrongFlagsEndWithTwo) {
  for (const std::vector<const char*>& arguments :
       {std::vector<const char*>{"--chekc", "blas"},
        {"--check", "blass"},
        {"--check", "links", "--skip-slow"},
        {"--watch", "0"},
        {"--watch", "1", "--json", "-"},
        {"blas"}}) {
    const auto parsed = Parsed(arguments);
    EXPECT_FALSE(parsed.flags.has_value()) << arguments[0];
    EXPECT_EQ(parsed.end.exit_code, 2) << arguments[0];
  }
}

TEST(CommandLineTest, HelpNamesEveryCheck) {
  const auto parsed = Parsed({"--help"});
  ASSERT_FALSE(parsed.flags.has_value());
  EXPECT_EQ(parsed.end.exit_code, 0);
  for (const Check& check : AllChecks()) {
    EXPECT_THAT(parsed.end.text, HasSubstr(check.name));
  }
}

TEST(ChosenChecksTest, SkipsSlowAndUnselectedChecks) {
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
