#include "tools/hvdliterun/plan/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvdlite::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<Flags> Parsed(const std::vector<std::string>& arguments) {
  return ParseFlags(arguments);
}

TEST(FlagsTest, TheProgramsWordsAreItsOwn) {
  const auto flags = Parsed({"-np", "2", "--mem=bind", "prog", "--mem", "-np"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->ranks, 2);
  EXPECT_EQ(flags->memory, MemoryPolicy::kBind);
  EXPECT_THAT(flags->program, ElementsAre("prog", "--mem", "-np"));
  EXPECT_THAT(Parsed({"-n", "1", "--", "-odd-name"})->program,
              ElementsAre("-odd-name"));
}

TEST(FlagsTest, MistakesAreNamed) {
  const auto error = [](const std::vector<std::string>& arguments) {
    return std::string(Parsed(arguments).status().message());
  };
  EXPECT_THAT(error({"--mapp", "numa", "prog"}), HasSubstr("--mapp"));
  for (const char* number : {"0", "-1", "NaN", "1.5", "", "99999999999"}) {
    EXPECT_THAT(error({"-np", number, "prog"}),
                HasSubstr("is no whole number from 1 to 1000000"));
    EXPECT_THAT(error({"--threads", number, "prog"}),
                HasSubstr("--threads: '"));
  }
  EXPECT_THAT(error({"--mapp", "numa", "prog"}),
              HasSubstr("did you mean --map?"));
  EXPECT_THAT(error({"-x", "A=1", "prog"}),
              HasSubstr("write --launcher-args '-x ...'"));
  EXPECT_THAT(error({"--map-by", "core", "prog"}),
              HasSubstr("--map-by is mpirun's"));
  EXPECT_THAT(error({"-H", "", "prog"}), HasSubstr("--host: is empty"));
  EXPECT_THAT(error({"--map", "chip", "prog"}),
              HasSubstr("--map: 'chip' is none of node, socket, numa, core"));
  EXPECT_THAT(error({"--mem", "inherit", "prog"}), HasSubstr("--mem"));
  EXPECT_THAT(error({"-np", "2"}), HasSubstr("which program"));
  EXPECT_THAT(error({"--set", "A", "prog"}), HasSubstr("NAME=VALUE"));
  EXPECT_THAT(error({"--preset", "x", "prog"}), HasSubstr("a64fx-numa"));
  EXPECT_THAT(error({"--topology", "core:2", "prog"}), HasSubstr("--dry-run"));
  EXPECT_THAT(error({"--comm-core", "x", "prog"}), HasSubstr("--comm-core"));
}

TEST(FlagsTest, ADryRunIsTextUnlessJsonIsAskedFor) {
  EXPECT_EQ(Parsed({"prog"})->dry_run, std::nullopt);
  EXPECT_EQ(Parsed({"--dry-run", "prog"})->dry_run, DryRunFormat::kText);
  EXPECT_EQ(Parsed({"--dry-run=text", "prog"})->dry_run, DryRunFormat::kText);
  const auto json = Parsed({"--dry-run=json", "--topology", "core:2", "prog"});
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(json->dry_run, DryRunFormat::kJson);
  // The program's name is none of the flag.
  EXPECT_THAT(Parsed({"--dry-run", "json"})->program, ElementsAre("json"));
  EXPECT_THAT(std::string(Parsed({"--dry-run=yaml", "p"}).status().message()),
              ::testing::AllOf(HasSubstr("--dry-run"), HasSubstr("yaml"),
                               HasSubstr("text"), HasSubstr("json")));
}

TEST(FlagsTest, SetWinsOverAKnobsOwnFlag) {
  const auto flags =
      Parsed({"--log-level", "info", "--set", "HVDLITE_LOG_LEVEL=debug",
              "--launcher-args", "-a  b", "--launcher-args=c", "prog"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  ASSERT_EQ(flags->settings.size(), 2u);
  EXPECT_EQ(flags->settings[0],
            (Variable{"HVDLITE_LOG_LEVEL", "debug", "--set"}));
  EXPECT_EQ(flags->settings[1],
            (Variable{"HVDLITE_LOG_LEVEL", "info", "--log-level"}));
  EXPECT_THAT(flags->launcher_arguments, ElementsAre("-a", "b", "c"));
}

TEST(FlagsTest, HelpShowsExamplesAndEveryKnob) {
  const auto flags = Parsed({"--help"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_THAT(flags->help, HasSubstr("Usage: hvdliterun [options] PROGRAM"));
  EXPECT_THAT(flags->help, HasSubstr("--dry-run PROGRAM"));
  EXPECT_THAT(flags->help, HasSubstr("--heartbeat-seconds"));
  EXPECT_THAT(flags->help, HasSubstr("HVDLITE_FUSION_THRESHOLD_BYTES"));
}

}  // namespace
}  // namespace hvdlite::launch
