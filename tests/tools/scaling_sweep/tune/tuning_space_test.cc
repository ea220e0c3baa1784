#include "tools/scaling_sweep/tune/tuning_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/tools/scaling_sweep/tune/tune_spec.h"
#include "tools/scaling_sweep/tune/candidate.h"

namespace hvdlite::scaling_sweep {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::SizeIs;

std::vector<std::string> OptionNames(const Dimensions& dimensions,
                                     const std::string& name) {
  std::vector<std::string> names;
  for (const Dimension& dimension : dimensions) {
    if (dimension.name() != name) continue;
    for (const Setting& option : dimension.option()) {
      names.push_back(option.name());
    }
  }
  return names;
}

TEST(TuningSpaceTest, TheBuiltInDimensionsFitTheMachine) {
  const support::MachineFacts two_cores = {
      .host = "h", .cores = 2, .cpu_flags = {"sse2", "avx2", "fma", "avx512f"}};
  const Dimensions small = BuiltInDimensions(two_cores, "/bin/train_mnist");
  EXPECT_THAT(OptionNames(small, "world"), ElementsAre("1 rank", "1x2", "2x1"));
  EXPECT_THAT(OptionNames(small, "blas"),
              ElementsAre("OpenBLAS's choice", "Haswell"));
  EXPECT_THAT(OptionNames(small, "preset"),
              ElementsAre("none", "xeon-socket", "interleave"));
  EXPECT_THAT(OptionNames(small, "memory"), SizeIs(0));
  EXPECT_THAT(OptionNames(small, "memory format"), SizeIs(0));

  const support::MachineFacts a64fx = {
      .host = "h", .processor = "A64FX", .cores = 48, .numa_nodes = 4};
  const Dimensions large = BuiltInDimensions(a64fx, "bin/train_resnet50");
  EXPECT_THAT(OptionNames(large, "world"),
              ElementsAre("1 rank", "1x48", "2x24", "4x12", "8x6", "16x3",
                          "32x1", "48x1"));
  EXPECT_THAT(OptionNames(large, "blas"), SizeIs(0));  // no choice
  EXPECT_THAT(OptionNames(large, "memory"), Contains("interleave"));
  EXPECT_THAT(OptionNames(large, "mapping"), Contains("numa"));
  EXPECT_THAT(OptionNames(large, "memory format"), Contains("onednn"));
  EXPECT_THAT(OptionNames(large, "preset"),
              ElementsAre("none", "a64fx-numa", "a64fx-node"));
  // Other Arm processors have no presets.
  const Dimensions other = BuiltInDimensions({.processor = "aarch64"}, "p");
  EXPECT_THAT(OptionNames(other, "preset"), SizeIs(0));
}

TEST(TuningSpaceTest, SeveralHostsGiveWorldsOnAllOfThem) {
  const support::MachineFacts two_cores = {.host = "h", .cores = 2};
  const Dimensions dimensions = BuiltInDimensions(two_cores, "p", 3);
  EXPECT_THAT(
      OptionNames(dimensions, "world"),
      ElementsAre("1 rank", "1x2", "2x1", "3 nodes of 1x2", "3 nodes of 2x1"));
  Spec spec = TuneSpec();
  for (const char* host : {"a", "b", "c"}) spec.add_host(host);
  Candidate last = WorldCandidates(dimensions).back();
  const auto configuration = ConfigurationOf(spec, dimensions, last);
  ASSERT_TRUE(configuration.ok()) << configuration.status();
  EXPECT_EQ(configuration->nodes, 3);
  EXPECT_EQ(configuration->ranks(), 6);
  EXPECT_EQ(configuration->threads, 1);
}

TEST(TuningSpaceTest, SizesOfBucketsAndChunksAreVaried) {
  const Dimensions dimensions = BuiltInDimensions({.cores = 2}, "p");
  for (const char* name : {"fusion", "min batch", "chunk"}) {
    EXPECT_THAT(OptionNames(dimensions, name), SizeIs(3)) << name;
  }
  const auto between =
      std::count_if(dimensions.begin(), dimensions.end(), IsBetweenRanks);
  EXPECT_EQ(between, 3);
}

// Returns the ranks of `preset` with the defaults of all other dimensions.
int RanksOfPreset(const Spec& spec, const Dimensions& dimensions,
                  const std::string& preset) {
  for (const Candidate& candidate : SettingCandidates(
           dimensions, {.world = LaunchersDefaults(dimensions)}, 100, 1)) {
    if (NameOf(dimensions, candidate) != "preset=" + preset) continue;
    return ConfigurationOf(spec, dimensions, candidate).value().ranks();
  }
  return 0;
}

TEST(TuningSpaceTest, PresetsKeepTheirRanks) {
  const support::MachineFacts a64fx = {
      .host = "h", .processor = "A64FX", .cores = 48, .numa_nodes = 4};
  Spec spec = TuneSpec();
  const Dimensions built_in = BuiltInDimensions(a64fx, "bin/train_resnet50");
  EXPECT_EQ(RanksOfPreset(spec, built_in, "a64fx-numa"), 4);
  EXPECT_EQ(RanksOfPreset(spec, built_in, "a64fx-node"), 1);
  // This also holds with dimensions of the spec.
  spec.mutable_tune()->mutable_dimension()->DeleteSubrange(0, 1);
  EXPECT_EQ(RanksOfPreset(spec, DimensionsOf(spec, a64fx), "a64fx-numa"), 4);
}

TEST(TuningSpaceTest, PresetsAreAddedUnlessTheSpecHasThem) {
  Spec spec = TuneSpec();
  EXPECT_THAT(OptionNames(DimensionsOf(spec, {}), "preset"),
              ElementsAre("none", "socket"));
  spec.mutable_tune()->mutable_dimension()->DeleteSubrange(0, 1);
  const support::MachineFacts x86 = {.cpu_flags = {"sse2"}};
  EXPECT_THAT(OptionNames(DimensionsOf(spec, x86), "preset"),
              Contains("xeon-socket"));
  EXPECT_EQ(DimensionsOf(spec, x86).size(), 4u);
  EXPECT_EQ(DimensionsOf(spec, {}).size(), 3u);
}

}  // namespace
}  // namespace hvdlite::scaling_sweep
