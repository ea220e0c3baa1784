#include "tools/hvdliterun/plan/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/str_cat.h"

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
  EXPECT_EQ(flags->memory, Memory{.policy = MemoryPolicy::kBind});
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
  EXPECT_THAT(error({"--bind-to", "core", "prog"}),
              HasSubstr("--bind-to is mpirun's"));
  EXPECT_THAT(error({"-H", "", "prog"}), HasSubstr("--host: is empty"));
  EXPECT_THAT(error({"--map", "chip", "prog"}),
              HasSubstr("--map: 'chip' is none of node, socket, numa, core"));
  EXPECT_THAT(error({"--mem", "inherit", "prog"}), HasSubstr("--mem"));
  EXPECT_THAT(error({"--mem", "bind=", "prog"}),
              HasSubstr("names 0 NUMA nodes"));
  EXPECT_THAT(error({"-np", "2"}), HasSubstr("which program"));
  EXPECT_THAT(error({"--set", "A", "prog"}), HasSubstr("NAME=VALUE"));
  EXPECT_THAT(error({"--preset", "x", "prog"}), HasSubstr("a64fx-numa"));
  EXPECT_THAT(error({"--topology", "core:2", "prog"}), HasSubstr("--dry-run"));
  EXPECT_THAT(error({"--comm-core", "x", "prog"}), HasSubstr("--comm-core"));
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
  for (const char* text :
       {"core", "ppr:1", "ppr:0:numa", "ppr:x:numa", "ppr:1:l2cache",
        "ppr:1:numa:pe=0", "ppr:1:numa:pe", "ppr:1:numa:span",
        "ppr:1:numa:pe=12:x", "slot:PE=4", ""}) {
    const auto flags = Parsed({"--map-by", text, "prog"});
    ASSERT_FALSE(flags.ok()) << text;
    EXPECT_THAT(std::string(flags.status().message()),
                ::testing::AllOf(HasSubstr(absl::StrCat("'", text, "'")),
                                 HasSubstr("ppr:N:DOMAIN:pe=CORES")));
  }
  EXPECT_FALSE(
      Parsed({"--map", "numa", "--map-by", "ppr:1:numa", "prog"}).ok());
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

TEST(FlagsFileTest, MistakesNameFileAndKey) {
  const auto error = [](const std::string& text,
                        std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"--config-file", FileOf(text)};
    words.insert(words.end(), more.begin(), more.end());
    words.emplace_back("prog");
    return std::string(Parsed(words).status().message());
  };
  EXPECT_THAT(error("npp = 3\n"), HasSubstr("flags.toml: 'npp' is no flag"));
  EXPECT_THAT(error("np = \"x\"\n"), HasSubstr("flags.toml: --np: 'x' is no"));
  EXPECT_THAT(error("mem = \"x\"\n"),
              HasSubstr("flags.toml: --mem: 'x' is none of local, interleave"));
  EXPECT_THAT(error("mapp = \"numa\"\n"), HasSubstr("did you mean map?"));
  EXPECT_THAT(error("[run]\nnp = 3\n"), HasSubstr("[run]: the file has no"));
  EXPECT_THAT(error("help = true\n"), HasSubstr("'help' belongs on the"));
  // This one is none of the file's.
  EXPECT_THAT(error("map = \"numa\"\n", {"-np", "x"}),
              ::testing::StartsWith("--np: 'x'"));
  EXPECT_THAT(
      std::string(
          Parsed({"--config-file", "/gone.toml", "prog"}).status().message()),
      HasSubstr("/gone.toml"));
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
  const auto error = [](const std::vector<std::string>& arguments) {
    return std::string(Parsed(arguments).status().message());
  };
  EXPECT_THAT(error({"--ssh-port", "65536", "prog"}),
              HasSubstr("'65536' is no port from 1 to 65535"));
  EXPECT_THAT(error({"--network-interface", "eth0,,x", "prog"}),
              HasSubstr("is not NAME or NAME,NAME"));
  EXPECT_THAT(error({"--output-dirr", "logs", "prog"}),
              HasSubstr("did you mean --output-dir?"));
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
