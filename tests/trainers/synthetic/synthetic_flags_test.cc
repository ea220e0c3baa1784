#include "trainers/synthetic/synthetic_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

namespace hvdlite::trainers {
namespace {

support::CommandLine<SyntheticFlags> Parse(const std::string& text) {
  std::vector<std::string> words = {"train_synthetic"};
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(word);
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  return ParseSyntheticFlags(static_cast<int>(arguments.size()),
                             arguments.data());
}

TEST(SyntheticFlagsTest, DefaultsAreThoseOfTfCnnBenchmarks) {
  const support::CommandLine<SyntheticFlags> result = Parse("");
  ASSERT_TRUE(result.flags) << result.end.text;
  EXPECT_EQ(result.flags->num_warmup_batches, 10);
  EXPECT_EQ(result.flags->num_batches, 100);
  EXPECT_EQ(result.flags->display_every, 10);
  EXPECT_EQ(result.flags->task.data_format, "NCHW");
}

TEST(SyntheticFlagsTest, LastValueOfAFlagCounts) {
  const support::CommandLine<SyntheticFlags> result =
      Parse("--instances 4 --report a.json --instances=1 --report=b");
  ASSERT_TRUE(result.flags) << result.end.text;
  EXPECT_EQ(result.flags->instances, 1);
  EXPECT_EQ(result.flags->report, "b");
}

TEST(SyntheticFlagsTest, BatchSizeAndPathAreNotPartOfTheArguments) {
  const Arguments arguments = ArgumentsOf(*Parse("--report DIR").flags);
  EXPECT_TRUE(arguments.contains("model"));
  EXPECT_TRUE(arguments.contains("views"));
  EXPECT_FALSE(arguments.contains("report"));
  EXPECT_FALSE(arguments.contains("instances"));
}

TEST(SyntheticFlagsTest, InstancesHaveSeparateReports) {
  EXPECT_EQ(ReportOfInstance("runs/1", 2), "runs/1/instance2");
  EXPECT_EQ(ReportOfInstance("runs/baselines.json", 2),
            "runs/baselines_2.json");
  EXPECT_EQ(ReportOfInstance("all.json", 0), "all_0.json");
}

TEST(SyntheticFlagsTest, BenchmarkHasTheModelsNameByDefault) {
  EXPECT_EQ(Parse("--model vae").flags->benchmark(), "vae");
  EXPECT_EQ(Parse("--model vae --name toy").flags->benchmark(), "toy");
}

TEST(SyntheticFlagsTest, PrecisionIsReportedAsOptimisationLevel) {
  const auto level = [](const char* flags) {
    return std::get<std::string>(ArgumentsOf(*Parse(flags).flags)["opt_level"]);
  };
  EXPECT_EQ(level("--model vae"), "O0");
  EXPECT_EQ(level("--model vae --bf16"), "O1");
}

}  // namespace
}  // namespace hvdlite::trainers
