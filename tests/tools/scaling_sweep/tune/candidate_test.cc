#include "tools/scaling_sweep/tune/candidate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/tools/scaling_sweep/tune/tune_spec.h"

namespace hvdlite::scaling_sweep {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

std::vector<std::string> Names(const Dimensions& dimensions,
                               const std::vector<Candidate>& candidates) {
  std::vector<std::string> names;
  for (const Candidate& candidate : candidates) {
    names.push_back(NameOf(dimensions, candidate));
  }
  return names;
}

// The names of candidates with the dimensions of TuneSpec.
const SearchBase kOneRank = {.world = {.options = {0, 0, 0, 0}}, .ranks = 1};
const SearchBase kTwoRanks = {.world = {.options = {0, 0, 1, 0}}, .ranks = 2};

TEST(CandidateTest, SettingsAreTriedInTheFastestWorld) {
  const Dimensions dimensions = DimensionsFrom(TuneSpec());
  EXPECT_THAT(Names(dimensions, WorldCandidates(dimensions)),
              ElementsAre("world=2"));
  EXPECT_THAT(Names(dimensions, SettingCandidates(dimensions, kTwoRanks, 5, 1)),
              ElementsAre("world=2", "blas=fast, world=2", "world=2, alloc=je",
                          "world=2, alloc=tc", "preset=socket"));
  EXPECT_THAT(Names(dimensions, SettingCandidates(dimensions, kOneRank, 2, 1)),
              ElementsAre("blas=fast", "alloc=je"));
}

TEST(CandidateTest, EachCombinationIsDrawnOnlyOnce) {
  const Dimensions dimensions = DimensionsFrom(TuneSpec());
  const auto all =
      Names(dimensions, SettingCandidates(dimensions, kTwoRanks, 100, 1));
  // The preset, and 2 * 3 settings, of which one is the world alone.
  EXPECT_THAT(all, SizeIs(7));
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), 7u);
  EXPECT_THAT(all, Contains("blas=fast, world=2, alloc=tc"));
  EXPECT_THAT(all, Not(Contains(HasSubstr("preset=socket, "))));
  EXPECT_EQ(SettingCandidates(dimensions, kTwoRanks, 6, 1),
            SettingCandidates(dimensions, kTwoRanks, 6, 1));
}

TEST(CandidateTest, CommunicationOptionsAreNotTriedWithOneRank) {
  Spec spec = TuneSpec();
  Variable& variable = *spec.mutable_tune()
                            ->mutable_dimension(1)
                            ->mutable_option(1)
                            ->mutable_environment(0);
  variable.set_name("HVDLITE_CHUNK_BYTES");
  const Dimensions dimensions = DimensionsFrom(spec);
  const auto names = [&](const SearchBase& base) {
    return Names(dimensions, SettingCandidates(dimensions, base, 100, 1));
  };
  EXPECT_THAT(names(kOneRank), Not(Contains(HasSubstr("blas=fast"))));
  EXPECT_THAT(names(kOneRank), Contains("alloc=tc"));
  EXPECT_THAT(names(kTwoRanks), Contains("blas=fast, world=2"));
}

TEST(CandidateTest, OptionsAreMergedIntoAConfiguration) {
  const Spec spec = TuneSpec();
  const Dimensions dimensions = DimensionsFrom(spec);
  const auto configuration =
      ConfigurationOf(spec, dimensions, {.options = {0, 1, 1, 2}});
  ASSERT_TRUE(configuration.ok()) << configuration.status();
  EXPECT_EQ(configuration->ranks(), 2);
  EXPECT_EQ(configuration->threads, 1);
  EXPECT_EQ(configuration->environment, (Variables{{"BLAS", "fast"}}));
  EXPECT_THAT(configuration->launcher_flags, ElementsAre("--alloc", "tc"));
  EXPECT_FALSE(configuration->alone);
  const auto defaults = ConfigurationOf(
      spec, dimensions, {.options = {0, 0, 0, 0}, .alone = true});
  EXPECT_TRUE(defaults->alone);
  EXPECT_EQ(defaults->ranks(), 1);
}

TEST(CandidateTest, LauncherDefaultsCanBeRemoved) {
  const Spec spec = TuneSpec();
  const Dimensions dimensions = DimensionsFrom(spec);
  Candidate candidate = {
      .options = {0, 0, 0, 1},
      .less = "malloc",
      .ablation = {.unset = {"M"}, .launcher_flags = {"--openmp", "libgomp"}}};
  EXPECT_EQ(NameOf(dimensions, candidate),
            "alloc=je, without hvdliterun's malloc");
  const auto configuration = ConfigurationOf(spec, dimensions, candidate);
  EXPECT_THAT(configuration->unset, ElementsAre("M"));
  EXPECT_THAT(configuration->launcher_flags,
              ElementsAre("--alloc", "je", "--openmp", "libgomp"));
  candidate.options[3] = 0;
  EXPECT_EQ(NameOf(dimensions, candidate),
            "hvdliterun's defaults, without hvdliterun's malloc");
}

TEST(CandidateTest, LibTorchsDefaultsIgnoreTheThreadsOfTheSpec) {
  Spec spec = TuneSpec();
  spec.add_threads(12);
  const Dimensions dimensions = DimensionsFrom(spec);
  Candidate candidate = {.options = {0, 0, 0, 0}};
  EXPECT_EQ(ConfigurationOf(spec, dimensions, candidate)->threads, 12);
  candidate.alone = true;
  EXPECT_EQ(ConfigurationOf(spec, dimensions, candidate)->threads, 0);
}

TEST(CandidateTest, TheBestOfEachDimensionAreCombined) {
  const Dimensions dimensions = DimensionsFrom(TuneSpec());
  const std::vector<Candidate> candidates =
      SettingCandidates(dimensions, kTwoRanks, 5, 1);
  // As in the first test; je is faster than the base, and tc than je.
  EXPECT_EQ(
      CombineBest(dimensions, kTwoRanks, candidates, {100, 120, 101, 110, 900}),
      (Candidate{.options = {0, 1, 1, 2}}));
  EXPECT_EQ(CombineBest(dimensions, kTwoRanks, candidates,
                        {100, 120, std::nullopt, 90, 900}),
            std::nullopt);
}

}  // namespace
}  // namespace hvdlite::scaling_sweep
