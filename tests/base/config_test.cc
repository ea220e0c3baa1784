#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/config/config_loader.h"
#include "base/environment.h"

namespace hvdlite {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string SourceOf(const Config& config, const std::string& name) {
  for (const ConfigValue& value : ConfigValues(config)) {
    if (value.name == name) return value.source;
  }
  return "no such option";
}

using Variables = std::vector<std::pair<std::string, std::string>>;

absl::StatusOr<Config> Load(const Variables& variables) {
  return LoadConfig(base::FakeEnvironment(variables));
}

std::string ErrorOf(const Variables& variables) {
  return std::string(Load(variables).status().message());
}

TEST(ConfigTest, EmptyEnvironmentGivesDefaults) {
  const auto config = Load({{"PATH", "/bin"}});
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->fusion_threshold_bytes, 64 << 20);
  EXPECT_EQ(config->backend, "auto");
  EXPECT_THAT(config->warnings, IsEmpty());
  for (const ConfigValue& value : ConfigValues(*config)) {
    EXPECT_EQ(value.source, "default") << value.name;
  }
}

TEST(ConfigTest, EveryVariableIsRead) {
  const auto config = Load({
      {"HVDLITE_FUSION_THRESHOLD_BYTES", "32M"},
      {"HVDLITE_MIN_BATCH_BYTES", "1000"},
      {"HVDLITE_CHUNK_BYTES", "64K"},
      {"HVDLITE_TREE_ARITY", "2"},
      {"HVDLITE_TIMELINE", "trace.json"},
      {"HVDLITE_TIMELINE_STEPS", "100-110"},
      {"HVDLITE_TIMELINE_CHUNKS", "on"},
      {"HVDLITE_LOG_LEVEL", "DEBUG"},
      {"HVDLITE_STALL_WARNING_SECONDS", "0.5"},
      {"HVDLITE_STALL_FAILURE_SECONDS", "7"},
      {"HVDLITE_WATCHDOG_SECONDS", "8"},
      {"HVDLITE_START_TIMEOUT_SECONDS", "8.5"},
      {"HVDLITE_SHUTDOWN_TIMEOUT_SECONDS", "9"},
      {"HVDLITE_MAX_POLL_PAUSE_US", "10"},
      {"HVDLITE_JOIN_AVERAGE_OVER_WORLD", "1"},
      {"HVDLITE_BACKEND", "single"},
      {"HVDLITE_DETERMINISTIC", "1"},
      {"HVDLITE_SHARED_MEMORY", "off"},
      {"HVDLITE_CONTROL_CHANNEL", "UCX"},
      {"HVDLITE_COORDINATOR_CORE", "11"},
      {"HVDLITE_HEARTBEAT_SECONDS", "12"},
      {"HVDLITE_ALLREDUCE_TABLE", "table.txt"},
      {"HVDLITE_VIRTUAL_NODES", "2,1"},
      {"HVDLITE_MALLOC", "keep"},
      {"HVDLITE_CHECK", "Every"},
      {"HVDLITE_NONFINITE_GRADIENTS", "skip"},
  });
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->fusion_threshold_bytes, 32 << 20);
  EXPECT_EQ(config->min_batch_bytes, 1000);
  EXPECT_EQ(config->chunk_bytes, 64 << 10);
  EXPECT_EQ(config->tree_arity, 2);
  EXPECT_EQ(config->timeline, "trace.json");
  EXPECT_EQ(config->timeline_steps, "100-110");
  EXPECT_TRUE(config->timeline_chunks);
  EXPECT_EQ(config->log_level, "debug");
  EXPECT_EQ(config->stall_warning_seconds, 0.5);
  EXPECT_EQ(config->stall_failure_seconds, 7);
  EXPECT_EQ(config->watchdog_seconds, 8);
  EXPECT_EQ(config->start_timeout_seconds, 8.5);
  EXPECT_EQ(config->shutdown_timeout_seconds, 9);
  EXPECT_EQ(config->max_poll_pause_us, 10);
  EXPECT_TRUE(config->join_average_over_world);
  EXPECT_EQ(config->backend, "single");
  EXPECT_TRUE(config->deterministic);
  EXPECT_FALSE(config->shared_memory);
  EXPECT_EQ(config->control_channel, "ucx");
  EXPECT_EQ(config->coordinator_core, "11");
  EXPECT_EQ(config->heartbeat_seconds, 12);
  EXPECT_EQ(config->allreduce_table, "table.txt");
  EXPECT_EQ(config->virtual_nodes, "2,1");
  EXPECT_EQ(config->malloc, "keep");
  EXPECT_EQ(config->check, "every");
  EXPECT_EQ(config->nonfinite_gradients, "skip");
  for (const ConfigValue& value : ConfigValues(*config)) {
    EXPECT_THAT(value.source, HasSubstr("HVDLITE_")) << value.name;
  }
  EXPECT_TRUE(ValidateConfig(*config).ok());
}

TEST(ConfigTest, BadValueNamesVariableValueAndWhatIsAccepted) {
  const struct {
    std::string variable;
    std::vector<std::string> values;
    std::string accepted;
  } rows[] = {{"HVDLITE_BACKEND", {"gloo"}, "auto, mpi, single"},
              {"HVDLITE_CHUNK_BYTES", {"much"}, "64M"},
              {"HVDLITE_CHUNK_BYTES", {"1"}, "64 to"},
              {"HVDLITE_TREE_ARITY", {"0", "32"}, "1 to 31"},
              {"HVDLITE_TIMELINE_STEPS",
               {"0", "-5", "5-4", "1-2-3", "a", "1-b", "-", "1.5"},
               "such as 100-110"},
              {"HVDLITE_VIRTUAL_NODES",
               {"two", "2,two", "2,", "0", "-1", "1;2", "2,,1"},
               "is not a number of ranks"},
              {"HVDLITE_COORDINATOR_CORE",
               {"", "-1", "last", "1,2", "65536"},
               "is not auto, none or the number of a CPU"},
              {"HVDLITE_STRICT", {"perhaps"}, ""}};
  for (const auto& [variable, values, accepted] : rows) {
    for (const std::string& value : values) {
      EXPECT_THAT(
          ErrorOf({{variable, value}}),
          AllOf(HasSubstr(variable + "=" + value), HasSubstr(accepted)));
    }
  }
}

TEST(ConfigTest, ValuesOfTheProgramAreCheckedAlike) {
  const struct {
    std::function<void(Config& config)> set;
    std::string field;
    std::string problem;
  } rows[] = {{[](Config& config) { config.backend = "MPI"; }, "backend",
               "auto, mpi, single"},
              {[](Config& config) { config.watchdog_seconds = -1; },
               "watchdog_seconds", "-1"},
              {[](Config& config) { config.tree_arity = 32; }, "tree_arity",
               "32 is not from 1 to 31"},
              {[](Config& config) { config.virtual_nodes = "0"; },
               "virtual_nodes", "'0'"},
              {[](Config& config) { config.coordinator_core = "last"; },
               "coordinator_core", "'last'"}};
  for (const auto& [set, field, problem] : rows) {
    Config config;
    set(config);
    EXPECT_THAT(std::string(ValidateConfig(config).message()),
                AllOf(HasSubstr("Config::" + field), HasSubstr(problem)));
  }
}

TEST(ConfigTest, LimitsAreAccepted) {
  for (const auto& [variable, value] :
       Variables{{"HVDLITE_TREE_ARITY", "31"},
                 {"HVDLITE_COORDINATOR_CORE", "auto"},
                 {"HVDLITE_COORDINATOR_CORE", "NONE"},
                 {"HVDLITE_COORDINATOR_CORE", "0"},
                 {"HVDLITE_COORDINATOR_CORE", "191"}}) {
    const auto config = Load({{variable, value}});
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_TRUE(ValidateConfig(*config).ok()) << variable << "=" << value;
  }
}

TEST(ConfigTest, StepsAreARangeOrOne) {
  const auto steps = [](const char* text) { return ParseSteps(text).value(); };
  constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(steps(""), std::pair(int64_t{1}, kLast));
  EXPECT_EQ(steps("7-"), std::pair(int64_t{7}, kLast));
  EXPECT_EQ(steps("100-110"), std::pair(int64_t{100}, int64_t{110}));
  EXPECT_EQ(steps("5"), std::pair(int64_t{5}, int64_t{5}));
}

TEST(ConfigTest, OnlyWhatConcernsOneRankMayDiffer) {
  std::vector<std::string> may_differ;
  for (const ConfigValue& value : ConfigValues(Config())) {
    if (!value.same_on_all_ranks) may_differ.push_back(value.name);
  }
  EXPECT_THAT(may_differ,
              ElementsAre("log_level", "coordinator_core", "malloc"));
}

TEST(ConfigTest, PathsStayWhatTheyAreWhereTheWorkingDirectoryChanges) {
  const std::filesystem::path before = std::filesystem::current_path();
  Config given;
  given.timeline = "trace.json";
  given.allreduce_table = "/etc/table.txt";
  const Config read =
      WithAbsolutePaths(Load({{"HVDLITE_TIMELINE", "trace.json"}}).value());
  given = WithAbsolutePaths(given);
  std::filesystem::current_path("/");
  EXPECT_EQ(read.timeline, (before / "trace.json").string());
  EXPECT_EQ(SourceOf(read, "timeline"), "HVDLITE_TIMELINE");
  EXPECT_EQ(WithAbsolutePaths(read).timeline, read.timeline);
  EXPECT_EQ(given.timeline, read.timeline);
  EXPECT_EQ(given.allreduce_table, "/etc/table.txt");
  EXPECT_EQ(WithAbsolutePaths(Config()).timeline, "");
  std::filesystem::current_path(before);
}

TEST(ConfigTest, RanksAgreeOnTheLastPartOfAPath) {
  Config config;
  config.timeline = "/scratch/rank0/trace.json";
  for (const ConfigValue& value : ConfigValues(config)) {
    EXPECT_EQ(value.to_agree_on,
              value.name == "timeline" ? "trace.json" : value.text);
  }
}

TEST(ConfigTest, UnknownVariableIsAWarningWithTheNearestName) {
  const auto config = Load({{"HVDLITE_TIMELIN", "trace.json"}});
  ASSERT_TRUE(config.ok());
  EXPECT_THAT(config->warnings,
              ElementsAre(AllOf(HasSubstr("HVDLITE_TIMELIN "),
                                HasSubstr("did you mean HVDLITE_TIMELINE?"))));
}

TEST(ConfigTest, WhatTheLauncherAndUcxReadIsKnown) {
  const auto config = Load({{"HVDLITE_STRICT", "1"},
                            {"HVDLITE_RESTARTS", "2"},
                            {"HVDLITE_COMMIT_STORE", "127.0.0.1:1/x"},
                            {"HVDLITE_END_NOTE_FD", "9"},
                            {"HVDLITE_STEP_REPORT_FD", "10"},
                            {"HVDLITE_UCX_TLS", "tcp"}});
  EXPECT_TRUE(config.ok()) << config.status();
}

TEST(ConfigTest, UnknownVariableIsAnErrorWhereStrict) {
  EXPECT_THAT(ErrorOf({{"HVDLITE_STRICT", "1"}, {"HVDLITE_TIMELIN", "x"}}),
              HasSubstr("HVDLITE_TIMELIN "));
}

TEST(ConfigTest, AssignmentByTheProgramTakesPrecedenceAndIsShown) {
  auto config = Load({{"HVDLITE_TREE_ARITY", "2"}});
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(SourceOf(*config, "tree_arity"), "HVDLITE_TREE_ARITY");
  config->tree_arity = 4;
  config->chunk_bytes = 128;
  EXPECT_EQ(SourceOf(*config, "tree_arity"), "program");
  EXPECT_EQ(SourceOf(*config, "chunk_bytes"), "program");
  EXPECT_EQ(SourceOf(*config, "backend"), "default");
  EXPECT_THAT(DescribeConfig(*config), HasSubstr("program"));
}

TEST(ConfigTest, SizesOfVirtualNodesAreParsed) {
  EXPECT_EQ(*ParseVirtualNodes("2,1"), (std::vector<int>{2, 1}));
  EXPECT_TRUE(ParseVirtualNodes("")->empty());
}

}  // namespace
}  // namespace hvdlite
