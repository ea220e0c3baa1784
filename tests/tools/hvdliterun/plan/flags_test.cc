#include "tools/hvdliterun/plan/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/str_split.h"
#include "support/command_line.h"

namespace hvdlite::launch {
namespace {

using ::testing::ElementsAre;

Flags Parsed(const std::vector<std::string>& arguments) {
  absl::StatusOr<Flags> flags = ParseFlags(arguments);
  EXPECT_TRUE(flags.ok()) << flags.status();
  return flags.ok() ? *std::move(flags) : Flags();
}

TEST(FlagsTest, ArgumentsOfTheProgramAreNotParsed) {
  const Flags flags =
      Parsed({"-np", "2", "--mem=bind", "prog", "--mem", "-np"});
  EXPECT_EQ(flags.ranks, 2);
  EXPECT_EQ(flags.memory, Memory{.policy = MemoryPolicy::kBind});
  EXPECT_THAT(flags.program, ElementsAre("prog", "--mem", "-np"));
  EXPECT_THAT(Parsed({"-n", "1", "--", "-odd-name"}).program,
              ElementsAre("-odd-name"));
}

TEST(FlagsTest, InvalidNumbersAndMappingsAreRefused) {
  for (const char* number : {"0", "-1", "NaN", "1.5", "", "99999999999"}) {
    for (const char* flag : {"-np", "--threads", "--min-np", "--ssh-port"}) {
      EXPECT_FALSE(ParseFlags({flag, number, "prog"}).ok()) << flag << number;
    }
  }
  for (const char* mapping :
       {"core", "ppr:1", "ppr:0:numa", "ppr:x:numa", "ppr:1:l2cache",
        "ppr:1:numa:pe=0", "ppr:1:numa:pe", "ppr:1:numa:span",
        "ppr:1:numa:pe=12:x", "slot:PE=4", ""}) {
    EXPECT_FALSE(ParseFlags({"--map-by", mapping, "prog"}).ok()) << mapping;
  }
}

TEST(FlagsTest, DryRunIsTextUnlessJsonIsRequested) {
  EXPECT_EQ(Parsed({"prog"}).dry_run, std::nullopt);
  EXPECT_EQ(Parsed({"--dry-run", "prog"}).dry_run, DryRunFormat::kText);
  EXPECT_EQ(Parsed({"--dry-run=text", "prog"}).dry_run, DryRunFormat::kText);
  const Flags json = Parsed({"--dry-run=json", "--topology", "core:2", "prog"});
  EXPECT_EQ(json.dry_run, DryRunFormat::kJson);
  // The program's name is not the value of the flag.
  EXPECT_THAT(Parsed({"--dry-run", "json"}).program, ElementsAre("json"));
}

TEST(FlagsTest, SetOverridesTheSettingsOwnFlag) {
  const Flags flags =
      Parsed({"--log-level", "info", "--set", "HVDLITE_LOG_LEVEL=debug",
              "--launcher-args", "-a  b", "--launcher-args=c", "prog"});
  ASSERT_EQ(flags.settings.size(), 2u);
  EXPECT_EQ(flags.settings[0],
            (Variable{"HVDLITE_LOG_LEVEL", "debug", "--set"}));
  EXPECT_EQ(flags.settings[1],
            (Variable{"HVDLITE_LOG_LEVEL", "info", "--log-level"}));
  EXPECT_THAT(flags.launcher_arguments, ElementsAre("-a", "b", "c"));
}

// The path of a new file for --config-file.
std::string FileOf(const std::string& text) {
  const std::string path = ::testing::TempDir() + "hvdliterun_flags.toml";
  std::ofstream(path) << text;
  return path;
}

TEST(FlagsFileTest, FileProvidesFlagsMissingOnTheCommandLine) {
  const std::string file = FileOf(
      "# A comment.\n"
      "np = 3\nhost = a:1,b:2\nmap = \"numa\"\noversubscribe = true\n"
      "launcher-args = \"-x  y\"\noutput-filename = \"logs\"\n");
  const Flags flags =
      Parsed({"--config-file", file, "--map", "core", "prog", "--mem", "x"});
  EXPECT_EQ(flags.ranks, 3);
  EXPECT_EQ(flags.host_list, "a:1,b:2");
  EXPECT_EQ(flags.map, Domain::kCore);
  EXPECT_TRUE(flags.oversubscribe);
  EXPECT_THAT(flags.launcher_arguments, ElementsAre("-x", "y"));
  EXPECT_EQ(flags.output_dir, "logs");
  EXPECT_THAT(flags.program, ElementsAre("prog", "--mem", "x"));
}

TEST(FlagsFileTest, HostfileOnTheCommandLineReplacesHostsOfTheFile) {
  const Flags flags = Parsed({"--config-file", FileOf("host = \"a:1\"\n"),
                              "--hostfile", "hosts", "prog"});
  EXPECT_EQ(flags.host_list, "");
  EXPECT_EQ(flags.hostfile, "hosts");
}

TEST(FlagsFileTest, CommandLineSettingsComeFirst) {
  const std::string file =
      FileOf("log-level = \"info\"\nset = [\"A=1\", \"B=x y\"]\n");
  const Flags alone = Parsed({"--config-file", file, "prog"});
  EXPECT_THAT(alone.settings,
              ElementsAre(Variable{"A", "1", "--set of " + file},
                          Variable{"B", "x y", "--set of " + file},
                          Variable{"HVDLITE_LOG_LEVEL", "info",
                                   "--log-level of " + file}));
  const Flags both = Parsed(
      {"--config-file", file, "--set", "HVDLITE_LOG_LEVEL=debug", "prog"});
  EXPECT_THAT(both.settings,
              ElementsAre(Variable{"HVDLITE_LOG_LEVEL", "debug", "--set"},
                          Variable{"HVDLITE_LOG_LEVEL", "info",
                                   "--log-level of " + file}));
}

TEST(FlagsTest, VersionAndCheckBuildNeedNoProgram) {
  EXPECT_EQ(Parsed({"--version"}).about, About::kVersion);
  EXPECT_EQ(Parsed({"-v"}).about, About::kVersion);
  EXPECT_EQ(Parsed({"--check-build"}).about, About::kBuild);
  EXPECT_EQ(Parsed({"prog", "--version"}).about, std::nullopt);
}

TEST(FlagsTest, HelpHasExamplesAndSettingsInNarrowLines) {
  const Flags flags = Parsed({"--help"});
  for (const char* word :
       {"Usage: hvdliterun [options] PROGRAM", "--dry-run PROGRAM",
        "--heartbeat-seconds", "HVDLITE_FUSION_THRESHOLD_BYTES"}) {
    EXPECT_THAT(flags.help, ::testing::HasSubstr(word));
  }
  const std::vector<std::string> lines = absl::StrSplit(flags.help, '\n');
  for (const std::string& line : lines) {
    EXPECT_LE(line.size(), support::kHelpWidth) << line;
  }
}

}  // namespace
}  // namespace hvdlite::launch
