#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/tools/scaling_sweep/tune/tune_spec.h"
#include "tools/scaling_sweep/tune/candidate.h"

namespace hvdlite::scaling_sweep {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsSupersetOf;
using testing::SizeIs;

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
      .host = "h", .cores = 2, .cpu_flags = {"avx2", "fma", "avx512f"}};
  const Dimensions small = BuiltInDimensions(two_cores, "/bin/train_mnist");
  EXPECT_THAT(OptionNames(small, "world"), ElementsAre("1 rank", "1x2", "2x1"));
  EXPECT_THAT(OptionNames(small, "blas"),
              ElementsAre("OpenBLAS's choice", "Haswell"));
  EXPECT_THAT(OptionNames(small, "preset"),
              ElementsAre("none", "xeon-socket", "interleave", "a64fx-numa",
                          "a64fx-node"));
  EXPECT_THAT(OptionNames(small, "memory"), SizeIs(0));
  EXPECT_THAT(OptionNames(small, "memory format"), SizeIs(0));

  const support::MachineFacts a64fx = {
      .host = "h", .cores = 48, .numa_nodes = 4};
  const Dimensions large = BuiltInDimensions(a64fx, "bin/train_resnet50");
  EXPECT_THAT(OptionNames(large, "world"),
              IsSupersetOf({"1x48", "4x12", "8x6"}));
  EXPECT_THAT(OptionNames(large, "blas"), SizeIs(0));  // no choice
  EXPECT_THAT(OptionNames(large, "memory"), Contains("interleave"));
  EXPECT_THAT(OptionNames(large, "mapping"), Contains("numa"));
  EXPECT_THAT(OptionNames(large, "memory format"), Contains("onednn"));
}

// How many ranks `preset` has with the defaults of all other dimensions.
int RanksOfPreset(const Spec& spec, const Dimensions& dimensions,
                  const std::string& preset) {
  for (const Candidate& candidate : StartCandidates(dimensions, 1, 1)) {
    if (NameOf(dimensions, candidate) != "preset=" + preset) continue;
    return ConfigurationOf(spec, dimensions, candidate).value().ranks();
  }
  return 0;
}

TEST(TuningSpaceTest, PresetsKeepTheirRanks) {
  const support::MachineFacts a64fx = {
      .host = "h", .cores = 48, .numa_nodes = 4};
  Spec spec = TuneSpec();
  const Dimensions built_in = BuiltInDimensions(a64fx, "bin/train_resnet50");
  EXPECT_EQ(RanksOfPreset(spec, built_in, "a64fx-numa"), 4);
  EXPECT_EQ(RanksOfPreset(spec, built_in, "a64fx-node"), 1);
  // Also with dimensions of the SPEC's own.
  spec.mutable_tune()->mutable_dimension()->DeleteSubrange(0, 1);
  EXPECT_EQ(RanksOfPreset(spec, DimensionsOf(spec, a64fx), "a64fx-numa"), 4);
}

TEST(TuningSpaceTest, PresetsAreThereWhereverTheSpecDoesNotSay) {
  Spec spec = TuneSpec();
  EXPECT_THAT(OptionNames(DimensionsOf(spec, {}), "preset"),
              ElementsAre("none", "socket"));
  spec.mutable_tune()->mutable_dimension()->DeleteSubrange(0, 1);
  EXPECT_THAT(OptionNames(DimensionsOf(spec, {}), "preset"),
              Contains("xeon-socket"));
  EXPECT_EQ(DimensionsOf(spec, {}).size(), 4u);
}

}  // namespace
}  // namespace hvdlite::scaling_sweep
