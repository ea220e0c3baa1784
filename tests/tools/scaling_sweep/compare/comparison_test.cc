#include "tools/scaling_sweep/compare/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/scaling_sweep/run/spec.h"

namespace hvdlite::scaling_sweep {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr double kFivePercent = 0.95;

// Speeds as a shared machine gives them: 3 % of scatter from run to run, the
// machine's drift over the sweep, and now and then a run that was disturbed.
class Noise {
 public:
  explicit Noise(uint64_t seed) : random_(seed) {}

  double Speed(double mean, int repeat) {
    double speed = mean * std::exp(0.03 * Normal());
    speed *= 1 + 0.02 * std::sin(0.9 * repeat + phase_);
    if (Uniform() < 0.05) speed *= 0.85;
    return speed;
  }

 private:
  double Uniform() {
    return (static_cast<double>(random_() >> 11) + 0.5) / 9007199254740992.0;
  }
  double Normal() {  // Box and Muller
    return std::sqrt(-2 * std::log(Uniform())) *
           std::cos(6.283185307179586 * Uniform());
  }

  std::mt19937_64 random_;
  double phase_ = 2 * Uniform();
};

Sample SampleOf(int ranks, int repeat, double speed) {
  Sample sample;
  sample.configuration = absl::StrCat("ranks=", ranks);
  sample.ranks = ranks;
  sample.repeat = repeat;
  sample.host = "h";
  if (speed > 0) sample.items_per_second = speed;
  return sample;
}

// Four configurations of which the one with 2 ranks takes `factor` of its
// usual speed.
Side Sweep(uint64_t seed, int repeats, double factor = 1) {
  Noise noise(seed);
  Side side;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (const int ranks : {1, 2, 4, 8}) {
      const double mean = 100 * ranks * (ranks == 2 ? factor : 1);
      side.results.samples.push_back(
          SampleOf(ranks, repeat, noise.Speed(mean, repeat)));
    }
  }
  return side;
}

const ComparedConfiguration& TwoRanks(const Comparison& comparison) {
  for (const ComparedConfiguration& compared : comparison.configurations) {
    if (compared.name == "1 node, 2 ranks") return compared;
  }
  ADD_FAILURE() << "not compared";
  return comparison.configurations.front();
}

TEST(ComparisonTest, ASlowdownOf20PercentIsFoundEveryTime) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto comparison =
        Compare(Sweep(2 * seed + 1, 7), Sweep(2 * seed + 2, 7, 0.8), 1);
    ASSERT_TRUE(comparison.ok()) << comparison.status();
    EXPECT_TRUE(LiesBelow(TwoRanks(*comparison).ratio, kFivePercent)) << seed;
    EXPECT_EQ(Judge(TwoRanks(*comparison).ratio), Significance::kSlower)
        << seed;
    EXPECT_TRUE(Fails(*comparison, kFivePercent)) << seed;
  }
}

TEST(ComparisonTest, OfTwentyPairsOfEqualRunsAtMostOneIsFlagged) {
  int flagged = 0;
  int slower = 0;
  int faster = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto comparison =
        Compare(Sweep(1000 + 2 * seed, 7), Sweep(1001 + 2 * seed, 7), 1);
    ASSERT_TRUE(comparison.ok()) << comparison.status();
    flagged += Fails(*comparison, kFivePercent);
    slower += Judge(comparison->overall) == Significance::kSlower;
    faster += Judge(comparison->overall) == Significance::kFaster;
  }
  EXPECT_LE(flagged, 1);
  // 95 % intervals: one of twenty may leave out 1.
  EXPECT_LE(slower + faster, 3);
}

TEST(ComparisonTest, ASmallSlowdownIsSeenButDoesNotFail) {
  Side a;
  Side b;
  for (int repeat = 0; repeat < 6; ++repeat) {
    a.results.samples.push_back(SampleOf(1, repeat, 100 + repeat));
    b.results.samples.push_back(SampleOf(1, repeat, (100 + repeat) * 0.97));
  }
  const auto comparison = Compare(a, b, 1);
  EXPECT_EQ(Judge(comparison->overall), Significance::kSlower);
  EXPECT_FALSE(Fails(*comparison, kFivePercent));
  EXPECT_TRUE(Fails(*comparison, 0.98));
  const std::string text = ComparisonText(*comparison, 0.98);
  EXPECT_THAT(text, HasSubstr("slower: FAILS -2.0 %"));
  EXPECT_THAT(text, HasSubstr("verdict: FAILS -2.0 %; all together: slower\n"));
}

Side Measured(const std::string& spec) {
  Side side;
  side.results.spec =
      ParseSpec(absl::StrCat("repeats: 1 scaling: STRONG ranks: 1 ", spec), "s")
          .value();
  side.results.samples = {SampleOf(1, 0, 100)};
  return side;
}

TEST(ComparisonTest, WhatTheSpecsMeasureDifferentlyIsNoted) {
  const Side a = Measured(
      "name: 'a' command: ['p', '--b', '{batch}', '{report}'] seed: 1 "
      "batch { size: 8 argument: WORLD }");
  const Side b = Measured(
      "name: 'b' command: ['p', '--fast', '--b', '{batch}', '{report}'] "
      "batch { size: 16 argument: WORLD } "
      "environment { name: 'A' value: '1' }");
  EXPECT_THAT(Compare(a, a, 1)->notes, ::testing::IsEmpty());
  EXPECT_THAT(
      ComparisonText(Compare(a, b, 1).value(), std::nullopt),
      ::testing::AllOf(
          HasSubstr("note: the SPECs differ: added: command[1]: \"--fast\"\n"),
          HasSubstr("note: the SPECs differ: modified: batch.size: 8 -> 16\n"),
          HasSubstr("note: the SPECs differ: added: environment[0]: "),
          ::testing::Not(HasSubstr("name: \"b\"")),
          ::testing::Not(HasSubstr("seed"))));
}

TEST(ComparisonTest, VariablesInAnotherOrderAreTheSame) {
  const std::string a = "environment { name: 'A' value: '1' } ";
  const std::string b = "environment { name: 'B' value: '2' } ";
  const auto spec = [](const std::string& words, const std::string& common,
                       const std::string& own) {
    return Measured(absl::StrCat("command: ['p', ", words, "'{report}'] ",
                                 common, "setting { name: 'x' ", own, "}"));
  };
  EXPECT_THAT(Compare(spec("", a + b, b + a), spec("", b + a, a + b), 1)->notes,
              ::testing::IsEmpty());
  // A word before others moves them, which is not told.
  EXPECT_THAT(Compare(spec("", a + b, ""), spec("'--new', ", b, ""), 1)->notes,
              ::testing::UnorderedElementsAre(
                  HasSubstr("the SPECs differ: added: command[1]: \"--new\""),
                  HasSubstr("the SPECs differ: deleted: environment[0]: ")));
  EXPECT_THAT(Compare(spec("", a, ""),
                      spec("", "environment { name: 'A' value: '3' }", ""), 1)
                  ->notes,
              ::testing::ElementsAre(
                  HasSubstr("modified: environment[0].value: \"1\" -> \"3\"")));
}

TEST(ComparisonTest, SettingsOfTheSameNameShouldBeTheSame) {
  const std::string program = "command: ['p', '{report}'] ";
  Side a = Measured(program +
                    "setting { name: 'x' argument: '1' ranks: 1 } "
                    "setting { name: 'y' }");
  Side b = Measured(program + "setting { name: 'x' argument: '2' ranks: 2 }");
  EXPECT_THAT(Compare(a, b, 1)->notes,
              ::testing::Each(HasSubstr("the SPECs differ: setting 'x': ")));
  EXPECT_THAT(Compare(a, b, 1)->notes, ::testing::Not(::testing::IsEmpty()));
  // Two settings differ on purpose.
  a.setting = "y";
  b.setting = "x";
  a.results.samples.front().setting = "y";
  b.results.samples.front().setting = "x";
  EXPECT_THAT(Compare(a, b, 1)->notes, ::testing::IsEmpty());
}

TEST(ComparisonTest, DifferentItemsAreNoPairs) {
  const std::string program = "command: ['p', '{report}'] items: ";
  const auto comparison = Compare(Measured(program + "'images'"),
                                  Measured(program + "'tokens'"), 1);
  EXPECT_EQ(comparison.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(comparison.status().message()),
              HasSubstr("the first counts images, the second tokens"));
}

TEST(ComparisonTest, PairsAreOfTheSameRepeat) {
  Side a;
  Side b;
  // The machine doubled its speed meanwhile; both sides saw it.
  for (int repeat = 0; repeat < 6; ++repeat) {
    const double machine = repeat < 3 ? 1 : 2;
    a.results.samples.push_back(SampleOf(1, repeat, 100 * machine));
    b.results.samples.insert(b.results.samples.begin(),
                             SampleOf(1, repeat, 90 * machine));
  }
  const auto comparison = Compare(a, b, 1);
  EXPECT_NEAR(comparison->overall.interval->low, 0.9, 1e-9);
  EXPECT_NEAR(comparison->overall.interval->high, 0.9, 1e-9);
}

TEST(ComparisonTest, OnePairProvesNothing) {
  Side a;
  Side b;
  a.results.samples = {SampleOf(1, 0, 100)};
  b.results.samples = {SampleOf(1, 0, 10)};
  const auto comparison = Compare(a, b, 1);
  EXPECT_EQ(Judge(comparison->overall), Significance::kNoDifference);
  EXPECT_FALSE(Fails(*comparison, kFivePercent));
  EXPECT_THAT(ComparisonText(*comparison, kFivePercent),
              HasSubstr("verdict: too few pairs to judge"));
}

TEST(ComparisonTest, WhatIsOnOneSideOnlyIsNotedAndNothingInCommonAnError) {
  Side a;
  Side b;
  a.results.samples = {SampleOf(1, 0, 100), SampleOf(2, 0, 100),
                       SampleOf(4, 0, 0)};
  b.results.samples = {SampleOf(1, 0, 100), SampleOf(8, 0, 100),
                       SampleOf(4, 0, 100)};
  b.results.samples.front().host = "other";
  const auto comparison = Compare(a, b, 1);
  EXPECT_THAT(comparison->notes,
              ::testing::UnorderedElementsAre(
                  "1 node, 4 ranks: no repeat succeeded on both sides",
                  "1 node, 2 ranks: only in the first",
                  "1 node, 8 ranks: only in the second",
                  "the two ran on different hosts"));
  a.results.samples.erase(a.results.samples.begin());
  EXPECT_FALSE(Compare(a, b, 1).ok());
}

TEST(ComparisonTest, TwoSettingsOfOneSweepCanBeCompared) {
  Side both;
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (const char* setting : {"old", "new"}) {
      Sample sample = SampleOf(1, repeat, setting[0] == 'o' ? 100 : 120);
      sample.setting = setting;
      both.results.samples.push_back(sample);
    }
  }
  Side old = both;
  Side fresh = both;
  old.setting = "old";
  fresh.setting = "new";
  EXPECT_NEAR(Compare(old, fresh, 1)->overall.ratio, 1.2, 1e-12);
  EXPECT_NEAR(Compare(both, both, 1)->overall.ratio, 1, 1e-12);
}

Sample SampleWith(const std::string& setting, int repeat, double speed) {
  Sample sample = SampleOf(1, repeat, speed);
  sample.setting = setting;
  absl::StrAppend(&sample.configuration, " setting=", setting);
  return sample;
}

Side WithSettings(const std::vector<std::pair<std::string, double>>& settings) {
  Side side;
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (const auto& [setting, speed] : settings) {
      side.results.samples.push_back(SampleWith(setting, repeat, speed));
    }
  }
  return side;
}

TEST(ComparisonTest, ASettingOfOneSideIsComparedWithTheSameOrTheOnlyOne) {
  Side one = WithSettings({{"old", 100}, {"new", 120}});
  one.setting = "new";
  const Side same = WithSettings({{"new", 60}, {"old", 100}});
  EXPECT_NEAR(Compare(same, one, 1)->overall.ratio, 2, 1e-12);
  EXPECT_NEAR(Compare(one, same, 1)->overall.ratio, 0.5, 1e-12);
  EXPECT_NEAR(Compare(WithSettings({{"other", 40}}), one, 1)->overall.ratio, 3,
              1e-12);
  EXPECT_NEAR(Compare(WithSettings({{"", 40}}), one, 1)->overall.ratio, 3,
              1e-12);
  const auto unclear = Compare(WithSettings({{"x", 1}, {"y", 2}}), one, 1);
  EXPECT_EQ(unclear.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unclear.status().message()), HasSubstr("'x', 'y'"));
}

TEST(ComparisonTest, TwoConfigurationsOfOneNameAreAnError) {
  Side a = WithSettings({{"core", 100}});
  Side b = a;
  Sample bound = SampleOf(1, 0, 50);
  bound.configuration = "mapping=core";
  bound.mapping = "core";
  b.results.samples.push_back(bound);
  const auto comparison = Compare(a, b, 1);
  EXPECT_EQ(comparison.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(comparison.status().message()),
              HasSubstr("mapping=core"));
}

TEST(ComparisonTest, SinglePairsAreNoPartOfTheIntervalOfAllTogether) {
  Side a;
  Side b;
  for (int repeat = 0; repeat < 3; ++repeat) {
    a.results.samples.push_back(SampleOf(1, repeat, 100));
    b.results.samples.push_back(SampleOf(1, repeat, 98 + 2 * repeat));
  }
  const auto without = Compare(a, b, 1);
  a.results.samples.push_back(SampleOf(2, 0, 100));
  b.results.samples.push_back(SampleOf(2, 0, 10));
  const auto with = Compare(a, b, 1);
  EXPECT_DOUBLE_EQ(with->overall.ratio, without->overall.ratio);
  EXPECT_DOUBLE_EQ(with->overall.interval->low, without->overall.interval->low);
  EXPECT_FALSE(Fails(*with, kFivePercent));
  EXPECT_THAT(with->notes, Contains(HasSubstr("1 node, 2 ranks: one pair")));
}

TEST(ComparisonTest, SinglePairsAloneHaveNoIntervalAndDoNotFail) {
  Side a;
  Side b;
  a.results.samples = {SampleOf(1, 0, 100), SampleOf(2, 0, 100)};
  b.results.samples = {SampleOf(1, 0, 10), SampleOf(2, 0, 10)};
  const auto comparison = Compare(a, b, 1);
  EXPECT_FALSE(comparison->overall.interval.has_value());
  EXPECT_NEAR(comparison->overall.ratio, 0.1, 1e-12);
  EXPECT_FALSE(Fails(*comparison, kFivePercent));
}

TEST(ComparisonTest, WhatSucceedsNoMoreFails) {
  Side a;
  Side b;
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (const int ranks : {1, 2, 4}) {
      a.results.samples.push_back(SampleOf(ranks, repeat, 100));
    }
    b.results.samples.push_back(SampleOf(1, repeat, 100));
    b.results.samples.push_back(SampleOf(2, repeat, 0));
  }
  const auto comparison = Compare(a, b, 1);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_TRUE(Fails(*comparison, kFivePercent));
  const std::string text = ComparisonText(*comparison, kFivePercent);
  EXPECT_THAT(text, HasSubstr("FAILS: 1 node, 2 ranks: no success in the "
                              "second\n"));
  EXPECT_THAT(text, HasSubstr("FAILS: 1 node, 4 ranks: no success in the "
                              "second\n"));
  EXPECT_THAT(ComparisonText(*comparison, std::nullopt),
              ::testing::Not(HasSubstr("FAILS")));
  // Failed before, too.
  EXPECT_FALSE(Fails(*Compare(b, b, 1), kFivePercent));
}

TEST(ComparisonTest, IfNothingSucceedsAnyMoreThatFails) {
  Side a;
  Side b;
  a.results.samples = {SampleOf(1, 0, 100)};
  b.results.samples = {SampleOf(1, 0, 0)};
  const auto comparison = Compare(a, b, 1);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_TRUE(Fails(*comparison, kFivePercent));
  EXPECT_THAT(ComparisonText(*comparison, kFivePercent),
              HasSubstr("verdict: FAILS -5.0 %; all together: no run succeeded "
                        "on both sides\n"));
}

TEST(ComparisonTest, ThresholdsArePercentages) {
  EXPECT_DOUBLE_EQ(ParseThreshold("-5%").value(), 0.95);
  EXPECT_DOUBLE_EQ(ParseThreshold("0%").value(), 1);
  for (const char* wrong : {"-5", "5%", "-100%", "x%", ""}) {
    EXPECT_FALSE(ParseThreshold(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace hvdlite::scaling_sweep
