#include "tools/scaling_sweep/tune/candidate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/tools/scaling_sweep/tune/tune_spec.h"

namespace hvdlite::scaling_sweep {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

std::vector<std::string> Names(const Dimensions& dimensions,
                               const std::vector<Candidate>& candidates) {
  std::vector<std::string> names;
  for (const Candidate& candidate : candidates) {
    names.push_back(NameOf(dimensions, candidate));
  }
  return names;
}

// Of TuneSpec's dimensions.
const SearchBase kOneRank = {.world = {.options = {0, 0, 0, 0}}, .ranks = 1};
const SearchBase kTwoRanks = {.world = {.options = {0, 0, 1, 0}}, .ranks = 2};

TEST(CandidateTest, WorldsComeFirstAndSettingsAreTriedInTheFastest) {
  const Dimensions dimensions = DimensionsFrom(TuneSpec());
  const std::vector<Candidate> worlds = WorldCandidates(dimensions);
  EXPECT_THAT(
      Names(dimensions, worlds),
      ElementsAre("LibTorch's defaults", "hvdliterun's defaults", "world=2"));
  EXPECT_EQ(FastestWorld(dimensions, worlds, {900, 100, 101}), kTwoRanks.world);
  EXPECT_EQ(FastestWorld(dimensions, worlds, {900, 100, 100}), kOneRank.world);
  EXPECT_EQ(FastestWorld(dimensions, worlds, {900, std::nullopt, 1}),
            kTwoRanks.world);
  EXPECT_EQ(FastestWorld(dimensions, worlds, {1, 1, std::nullopt}),
            kOneRank.world);
  EXPECT_THAT(Names(dimensions, StartCandidates(dimensions, kTwoRanks, 7, 1)),
              ElementsAre("LibTorch's defaults", "hvdliterun's defaults",
                          "world=2", "preset=socket", "blas=fast, world=2",
                          "world=2, alloc=je", "world=2, alloc=tc"));
  // However few are wanted.
  EXPECT_THAT(Names(dimensions, StartCandidates(dimensions, kOneRank, 1, 1)),
              ElementsAre("LibTorch's defaults", "hvdliterun's defaults",
                          "world=2", "preset=socket"));
}

TEST(CandidateTest, CombinationsAreDrawnOnceEachUntilThereAreNoMore) {
  const Dimensions dimensions = DimensionsFrom(TuneSpec());
  const auto all =
      Names(dimensions, StartCandidates(dimensions, kTwoRanks, 100, 1));
  // Two worlds, LibTorch's defaults, the preset, and 2 * 3 - 1 settings.
  EXPECT_THAT(all, SizeIs(9));
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), 9u);
  EXPECT_THAT(all, Contains("blas=fast, world=2, alloc=tc"));
  EXPECT_THAT(all, Not(Contains(HasSubstr("preset=socket, "))));
  EXPECT_EQ(StartCandidates(dimensions, kTwoRanks, 8, 1),
            StartCandidates(dimensions, kTwoRanks, 8, 1));
}

TEST(CandidateTest, WhatIsBetweenRanksIsNotTriedWithOne) {
  Spec spec = TuneSpec();
  Variable& variable = *spec.mutable_tune()
                            ->mutable_dimension(1)
                            ->mutable_option(1)
                            ->mutable_environment(0);
  variable.set_name("HVDLITE_CHUNK_BYTES");
  const Dimensions dimensions = DimensionsFrom(spec);
  const auto names = [&](const SearchBase& base) {
    return Names(dimensions, StartCandidates(dimensions, base, 100, 1));
  };
  EXPECT_THAT(names(kOneRank), Not(Contains(HasSubstr("blas=fast"))));
  EXPECT_THAT(names(kOneRank), Contains("alloc=tc"));
  EXPECT_THAT(names(kTwoRanks), Contains("blas=fast, world=2"));
}

TEST(CandidateTest, OptionsAddUpToAConfiguration) {
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

TEST(CandidateTest, WhatTheLauncherDoesCanBeTakenAway) {
  const Spec spec = TuneSpec();
  const Dimensions dimensions = DimensionsFrom(spec);
  Candidate candidate = {
      .options = {0, 0, 0, 1},
      .less = "malloc",
      .ablation = {.unset = {"M"}, .launcher_flags = {"--openmp", "libgomp"}}};
  EXPECT_EQ(NameOf(dimensions, candidate),
            "alloc=je, less hvdliterun's malloc");
  const auto configuration = ConfigurationOf(spec, dimensions, candidate);
  EXPECT_THAT(configuration->unset, ElementsAre("M"));
  EXPECT_THAT(configuration->launcher_flags,
              ElementsAre("--alloc", "je", "--openmp", "libgomp"));
  candidate.options[3] = 0;
  EXPECT_EQ(NameOf(dimensions, candidate),
            "hvdliterun's defaults, less hvdliterun's malloc");
}

TEST(CandidateTest, LibTorchsDefaultsDoNotHaveTheSpecsThreads) {
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
      StartCandidates(dimensions, kTwoRanks, 7, 1);
  // As in the first test; je beats the base, tc beats je.
  EXPECT_EQ(CombineBest(dimensions, kTwoRanks, candidates,
                        {50, 90, 100, 900, 120, 101, 110}),
            (Candidate{.options = {0, 1, 1, 2}}));
  EXPECT_EQ(CombineBest(dimensions, kTwoRanks, candidates,
                        {50, 10, 100, 900, 120, std::nullopt, 90}),
            std::nullopt);
}

TEST(SuccessiveHalvingTest, TheFasterHalfStaysAndFailuresGo) {
  EXPECT_THAT(BetterHalf({1, 5, std::nullopt, 4, 3}), ElementsAre(1, 3));
  EXPECT_THAT(BetterHalf({1, 5, 4}), ElementsAre(1, 2));
  EXPECT_THAT(BetterHalf({7}), ElementsAre(0));
  EXPECT_THAT(BetterHalf({std::nullopt, std::nullopt}), SizeIs(0));
  EXPECT_EQ(RepeatsAfterRound(3, 0), 3);
  EXPECT_EQ(RepeatsAfterRound(3, 2), 12);
}

}  // namespace
}  // namespace hvdlite::scaling_sweep
