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

TEST(CandidateTest, TheDefaultsPresetsAndSingleOptionsComeFirst) {
  const Dimensions dimensions = DimensionsFrom(TuneSpec());
  EXPECT_THAT(Names(dimensions, StartCandidates(dimensions, 7, 1)),
              ElementsAre("LibTorch's defaults", "hvdliterun's defaults",
                          "preset=socket", "blas=fast", "world=2", "alloc=je",
                          "alloc=tc"));
  // However few are wanted.
  EXPECT_THAT(Names(dimensions, StartCandidates(dimensions, 1, 1)),
              ElementsAre("LibTorch's defaults", "hvdliterun's defaults",
                          "preset=socket"));
}

TEST(CandidateTest, CombinationsAreDrawnOnceEachUntilThereAreNoMore) {
  const Dimensions dimensions = DimensionsFrom(TuneSpec());
  const auto all = Names(dimensions, StartCandidates(dimensions, 100, 1));
  // 2 * 2 * 3 without preset, LibTorch's defaults, and the preset.
  EXPECT_THAT(all, SizeIs(14));
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), 14u);
  EXPECT_THAT(all, Contains("blas=fast, world=2, alloc=tc"));
  EXPECT_THAT(all, Not(Contains(HasSubstr("preset=socket, "))));
  EXPECT_EQ(StartCandidates(dimensions, 9, 1),
            StartCandidates(dimensions, 9, 1));
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
  const std::vector<Candidate> candidates = StartCandidates(dimensions, 7, 1);
  // As in the first test; je beats the default, tc beats je.
  EXPECT_EQ(
      CombineBest(dimensions, candidates, {50, 100, 900, 120, 90, 101, 110}),
      (Candidate{.options = {0, 1, 0, 2}}));
  EXPECT_EQ(CombineBest(dimensions, candidates,
                        {50, 100, 900, 120, std::nullopt, 90, 90}),
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
