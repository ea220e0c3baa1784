#include "tools/scaling_sweep/run/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/environment.h"
#include "support/machine.h"
#include "tools/scaling_sweep/flags.h"
#include "tools/scaling_sweep/run/spec.h"

namespace hvdlite::scaling_sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const RunFiles kFiles = {.report = "/r.json", .trace = "/t.json", .log = ""};

Spec SpecOf(const std::string& command) {
  return ParseSpec(
             "repeats: 1 scaling: STRONG ranks: 1 command: [" + command + "]",
             "s")
      .value();
}

TEST(CommandTest, TheLauncherGetsWorldThreadsVariablesAndTrace) {
  Spec spec = SpecOf("'prog', '--report={report}', '{ranks}x{threads}'");
  spec.add_host("h1");
  spec.add_host("h2");
  const Configuration configuration = {.nodes = 2,
                                       .ranks_per_node = 3,
                                       .threads = 4,
                                       .mapping = "numa",
                                       .environment = {{"A", "b c"}},
                                       .launcher_flags = {"--huge-pages"},
                                       .arguments = {"--bf16"}};
  const Command command =
      BuildCommand(spec, configuration, kFiles, "run", true);
  EXPECT_THAT(command.arguments,
              ElementsAre("run", "-np", "6", "-H", "h1:3,h2:3", "--map", "numa",
                          "--threads", "4", "--oversubscribe", "--set", "A=b c",
                          "--huge-pages", "--timeline", "/t.json", "prog",
                          "--report=/r.json", "6x4", "--bf16"));
  EXPECT_TRUE(command.environment.empty());
}

TEST(CommandTest, AloneStartsTheProgramItself) {
  const Configuration configuration = {
      .threads = 2, .alone = true, .environment = {{"A", "b"}}};
  const Command command = BuildCommand(SpecOf("'prog', '{report}'"),
                                       configuration, kFiles, "run", false);
  EXPECT_THAT(command.arguments, ElementsAre("prog", "/r.json"));
  EXPECT_EQ(command.environment, (Variables{{"A", "b"},
                                            {"OMP_NUM_THREADS", "2"},
                                            {"HVDLITE_TIMELINE", "/t.json"}}));
}

TEST(CommandTest, EnvRemovesVariables) {
  const Command command =
      BuildCommand(SpecOf("'prog', '{report}'"), {.unset = {"A", "B"}},
                   {"/r.json", "", ""}, "run", false);
  EXPECT_THAT(command.arguments,
              ElementsAre("run", "-np", "1", "env", "-u", "A", "-u", "B",
                          "prog", "/r.json"));
}

TEST(CommandTest, NoTraceIsRecordedIfTheProgramWritesItsOwn) {
  const Command command = BuildCommand(SpecOf("'p', '{report}', '{trace}'"), {},
                                       kFiles, "run", false);
  EXPECT_THAT(command.arguments,
              ElementsAre("run", "-np", "1", "p", "/r.json", "/t.json"));
}

TEST(CommandTest, NoTraceIsRecordedIfTheSettingNamesOne) {
  const Command command =
      BuildCommand(SpecOf("'p', '{report}'"), {.arguments = {"-t={trace}"}},
                   kFiles, "run", false);
  EXPECT_THAT(command.arguments,
              ElementsAre("run", "-np", "1", "p", "/r.json", "-t=/t.json"));
}

TEST(CommandTest, PlaceholdersAreReplacedInFlagsAndVariables) {
  Configuration configuration = {.ranks_per_node = 2,
                                 .environment = {{"N", "{ranks}"}},
                                 .launcher_flags = {"--x={ranks_per_node}"}};
  const Spec spec = SpecOf("'p', '{report}'");
  EXPECT_THAT(BuildCommand(spec, configuration, kFiles, "run", false).arguments,
              ElementsAre("run", "-np", "2", "--set", "N=2", "--x=2",
                          "--timeline", "/t.json", "p", "/r.json"));
  configuration = {.alone = true, .environment = {{"N", "{ranks}{report}"}}};
  EXPECT_EQ(BuildCommand(spec, configuration, kFiles, "run", false).environment,
            (Variables{{"N", "1/r.json"}, {"HVDLITE_TIMELINE", "/t.json"}}));
}

TEST(CommandTest, TracePlaceholderIsReplacedWithoutATrace) {
  const RunFiles files = {.report = "/run/r.json", .trace = "", .log = ""};
  EXPECT_THAT(
      BuildCommand(SpecOf("'p', '{report}', '{trace}'"), {}, files, "run",
                   false)
          .arguments,
      ElementsAre("run", "-np", "1", "p", "/run/r.json", "/run/trace.json"));
}

TEST(CommandTest, ShellReadsShellTextBack) {
  EXPECT_EQ(ShellText({"a", "b c", "it's", "", "$x"}),
            R"(a 'b c' 'it'\''s' '' '$x')");
}

TEST(FlagsTest, RunIsTheDefaultCommand) {
  const auto line = ParseCommandLine({"s.txt", "--output", "d"});
  ASSERT_TRUE(line.flags.has_value()) << line.end.text;
  EXPECT_EQ(line.flags->command, "run");
  EXPECT_THAT(line.flags->arguments, ElementsAre("s.txt"));
  EXPECT_EQ(line.flags->output, "d");
}

TEST(FlagsTest, NegativePercentageIsTheValueOfItsFlag) {
  const auto line = ParseCommandLine({"compare", "a", "b", "--fail-if", "-5%"});
  ASSERT_TRUE(line.flags.has_value()) << line.end.text;
  EXPECT_EQ(line.flags->fail_if, "-5%");
  EXPECT_THAT(line.flags->arguments, ElementsAre("a", "b"));
}

TEST(FlagsTest, TuneTakesAProgramWithItsFlags) {
  const auto line = ParseCommandLine(
      {"tune", "--candidates", "4", "--", "prog", "--output", "x", "-v"});
  ASSERT_TRUE(line.flags.has_value()) << line.end.text;
  EXPECT_THAT(line.flags->arguments,
              ElementsAre("prog", "--output", "x", "-v"));
  EXPECT_EQ(line.flags->candidates, 4);
  EXPECT_EQ(line.flags->output, "");
}

TEST(FlagsTest, WrongArgumentsAreUserErrors) {
  EXPECT_EQ(ParseCommandLine({}).end.exit_code, 2);
  EXPECT_EQ(ParseCommandLine({"compare", "a"}).end.exit_code, 2);
  const auto line = ParseCommandLine({"run", "s", "--no-such-flag"});
  EXPECT_EQ(line.end.exit_code, 2);
  EXPECT_THAT(line.end.text, HasSubstr("--no-such-flag"));
  EXPECT_EQ(ParseCommandLine({"--help"}).end.exit_code, 0);
  EXPECT_THAT(ParseCommandLine({"--version"}).end.text, HasSubstr("(hvdlite)"));
  EXPECT_EQ(ParseCommandLine({"tune", "--help"}).end.exit_code, 0);
}

}  // namespace
}  // namespace hvdlite::scaling_sweep
