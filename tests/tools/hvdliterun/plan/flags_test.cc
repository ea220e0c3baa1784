#include "tools/hvdliterun/plan/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/str_split.h"
#include "support/command_line.h"

namespace hvdlite::launch {
namespace {

using ::testing::ElementsAre;

absl::StatusOr<Flags> Parsed(const std::vector<std::string>& arguments) {
  return ParseFlags(arguments);
}

TEST(FlagsTest, TheProgramsWordsAreItsOwn) {
  const auto flags = Parsed({"-np", "2", "--mem=bind", "prog", "--mem", "-np"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->ranks, 2);
  EXPECT_EQ(flags->memory, Memory{.policy = MemoryPolicy::kBind});
  EXPECT_THAT(flags->program, ElementsAre("prog", "--mem", "-np"));
  EXPECT_THAT(Parsed({"-n", "1", "--", "-odd-name"})->program,
              ElementsAre("-odd-name"));
}

TEST(FlagsTest, OpenMpisWordsForAMappingAreShortForOurs) {
  const auto numa = Parsed({"--map-by", "ppr:1:numa:pe=12", "prog"});
  ASSERT_TRUE(numa.ok()) << numa.status();
  EXPECT_EQ(numa->map, Domain::kNuma);
  EXPECT_EQ(numa->threads, 12);
  EXPECT_EQ(numa->comm_core, (CommCore{.kind = CommCore::Kind::kNone}));
  EXPECT_EQ(numa->placement->ranks_per_domain, 1);
  const auto two = Parsed({"--map-by=ppr:2:socket", "prog"});
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(two->map, Domain::kSocket);
  EXPECT_EQ(two->threads, std::nullopt);
  EXPECT_EQ(two->comm_core, std::nullopt);
  EXPECT_EQ(two->placement->ranks_per_domain, 2);
  const auto own = Parsed({"--map-by", "ppr:1:node:pe=48", "--threads", "47",
                           "--comm-core", "47", "prog"});
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->threads, 47);
  EXPECT_EQ(own->comm_core->number, 47);
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

// Path of a file for --config-file.
std::string FileOf(const std::string& text) {
  const std::string path = ::testing::TempDir() + "hvdliterun_flags.toml";
  std::ofstream(path) << text;
  return path;
}

TEST(FlagsFileTest, TheFileGivesWhatTheCommandLineLeavesOut) {
  const std::string file = FileOf(
      "# Of the group.\n"
      "np = 3\nhost = a:1,b:2\nmap = \"numa\"\noversubscribe = true\n"
      "launcher-args = \"-x  y\"\noutput-filename = \"logs\"\n");
  const auto flags =
      Parsed({"--config-file", file, "--map", "core", "prog", "--mem", "x"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->ranks, 3);
  EXPECT_EQ(flags->host_list, "a:1,b:2");
  EXPECT_EQ(flags->map, Domain::kCore);
  EXPECT_TRUE(flags->oversubscribe);
  EXPECT_THAT(flags->launcher_arguments, ElementsAre("-x", "y"));
  EXPECT_EQ(flags->output_dir, "logs");
  EXPECT_THAT(flags->program, ElementsAre("prog", "--mem", "x"));
}

TEST(FlagsFileTest, TheCommandLinesHostfileReplacesTheFilesHosts) {
  const auto flags = Parsed({"--config-file", FileOf("host = \"a:1\"\n"),
                             "--hostfile", "hosts", "prog"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->host_list, "");
  EXPECT_EQ(flags->hostfile, "hosts");
}

TEST(FlagsFileTest, SettingsOfTheCommandLineComeFirst) {
  const std::string file =
      FileOf("log-level = \"info\"\nset = [\"A=1\", \"B=x y\"]\n");
  const auto alone = Parsed({"--config-file", file, "prog"});
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_THAT(alone->settings,
              ElementsAre(Variable{"A", "1", "--set of " + file},
                          Variable{"B", "x y", "--set of " + file},
                          Variable{"HVDLITE_LOG_LEVEL", "info",
                                   "--log-level of " + file}));
  const auto both = Parsed(
      {"--config-file", file, "--set", "HVDLITE_LOG_LEVEL=debug", "prog"});
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_THAT(both->settings,
              ElementsAre(Variable{"HVDLITE_LOG_LEVEL", "debug", "--set"},
                          Variable{"HVDLITE_LOG_LEVEL", "info",
                                   "--log-level of " + file}));
}

TEST(FlagsTest, WhatIsAskedAboutHvdliterunNeedsNoProgram) {
  EXPECT_EQ(Parsed({"--version"})->about, About::kVersion);
  EXPECT_EQ(Parsed({"-v"})->about, About::kVersion);
  EXPECT_EQ(Parsed({"--check-build"})->about, About::kBuild);
  EXPECT_EQ(Parsed({"prog", "--version"})->about, std::nullopt);
}

TEST(FlagsTest, HorovodsFlagsAreKnown) {
  const auto flags = Parsed({"--verbose", "--output-filename", "logs",
                             "--network-interface", "eth0,ib0", "--ssh-port",
                             "2222", "--ssh-identity-file", "key", "prog"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_TRUE(flags->verbose);
  EXPECT_EQ(flags->output_dir, "logs");
  EXPECT_THAT(flags->interfaces, ElementsAre("eth0", "ib0"));
  EXPECT_EQ(flags->ssh_port, 2222);
  EXPECT_EQ(flags->ssh_identity_file, "key");
}

TEST(FlagsTest, HelpShowsExamplesAndKnobsInNarrowLines) {
  const auto flags = Parsed({"--help"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  for (const char* word :
       {"Usage: hvdliterun [options] PROGRAM", "--dry-run PROGRAM",
        "--heartbeat-seconds", "HVDLITE_FUSION_THRESHOLD_BYTES"}) {
    EXPECT_THAT(flags->help, ::testing::HasSubstr(word));
  }
  const std::vector<std::string> lines = absl::StrSplit(flags->help, '\n');
  for (const std::string& line : lines) {
    EXPECT_LE(line.size(), support::kHelpWidth) << line;
  }
}

}  // namespace
}  // namespace hvdlite::launch
