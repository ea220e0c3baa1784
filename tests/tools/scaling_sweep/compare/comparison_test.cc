#include "tools/scaling_sweep/compare/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/golden.h"
#include "tools/scaling_sweep/run/spec.h"

namespace hvdlite::scaling_sweep {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr double kFivePercent = 0.95;

// Simulates the speeds of a shared machine: 3 % of scatter from run to run,
// drift during the sweep, and sometimes a disturbed run.
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

// Four configurations; the one with 2 ranks has `factor` of its usual speed.
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

TEST(ComparisonTest, SlowdownOf20PercentIsAlwaysFound) {
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

TEST(ComparisonTest, EqualRunsAreFlaggedInAtMostOneOfTwentyCases) {
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

Side Measured(const std::string& spec) {
  Side side;
  side.results.spec =
      ParseSpec(absl::StrCat("repeats: 1 scaling: STRONG ranks: 1 ", spec), "s")
          .value();
  side.results.samples = {SampleOf(1, 0, 100)};
  return side;
}

TEST(ComparisonTest, DifferencesOfTheSpecsAreNoted) {
  const Side a = Measured(
      "name: 'a' command: ['p', '--b', '{batch}', '{report}'] seed: 1 "
      "batch { size: 8 argument: WORLD }");
  const Side b = Measured(
      "name: 'b' command: ['p', '--fast', '--b', '{batch}', '{report}'] "
      "batch { size: 16 argument: WORLD } "
      "environment { name: 'A' value: '1' }");
  EXPECT_THAT(Compare(a, a, 1)->notes, IsEmpty());
  EXPECT_THAT(Compare(a, b, 1)->notes,
              ::testing::UnorderedElementsAre(
                  "the spec files differ: added: command[1]: \"--fast\"",
                  "the spec files differ: modified: batch.size: 8 -> 16",
                  HasSubstr("the spec files differ: added: environment[0]: ")));
}

TEST(ComparisonTest, OrderOfVariablesDoesNotMatter) {
  const std::string a = "environment { name: 'A' value: '1' } ";
  const std::string b = "environment { name: 'B' value: '2' } ";
  const auto spec = [](const std::string& words, const std::string& common,
                       const std::string& own) {
    return Measured(absl::StrCat("command: ['p', ", words, "'{report}'] ",
                                 common, "setting { name: 'x' ", own, "}"));
  };
  EXPECT_THAT(Compare(spec("", a + b, b + a), spec("", b + a, a + b), 1)->notes,
              IsEmpty());
  // An added argument moves others; the move is not reported.
  EXPECT_THAT(
      Compare(spec("", a + b, ""), spec("'--new', ", b, ""), 1)->notes,
      ::testing::UnorderedElementsAre(
          HasSubstr("the spec files differ: added: command[1]: \"--new\""),
          HasSubstr("the spec files differ: deleted: environment[0]: ")));
  EXPECT_THAT(Compare(spec("", a, ""),
                      spec("", "environment { name: 'A' value: '3' }", ""), 1)
                  ->notes,
              ::testing::ElementsAre(
                  HasSubstr("modified: environment[0].value: \"1\" -> \"3\"")));
}

TEST(ComparisonTest, SettingsWithTheSameNameAreCompared) {
  const std::string program = "command: ['p', '{report}'] ";
  Side a = Measured(program +
                    "setting { name: 'x' argument: '1' ranks: 1 } "
                    "setting { name: 'y' }");
  Side b = Measured(program + "setting { name: 'x' argument: '2' ranks: 2 }");
  EXPECT_THAT(
      Compare(a, b, 1)->notes,
      ::testing::Each(HasSubstr("the spec files differ: setting 'x': ")));
  EXPECT_THAT(Compare(a, b, 1)->notes, Not(IsEmpty()));
  // Two settings differ on purpose.
  a.setting = "y";
  b.setting = "x";
  a.results.samples.front().setting = "y";
  b.results.samples.front().setting = "x";
  EXPECT_THAT(Compare(a, b, 1)->notes, IsEmpty());
}

// Speeds of the repeats; 0: it failed.
using Speeds = std::vector<std::pair<int, std::vector<double>>>;  // by ranks

Side SideOf(const Speeds& speeds, const std::string& setting = "") {
  Side side;
  for (const auto& [ranks, of_ranks] : speeds) {
    for (size_t repeat = 0; repeat < of_ranks.size(); ++repeat) {
      Sample sample =
          SampleOf(ranks, static_cast<int>(repeat), of_ranks[repeat]);
      sample.setting = setting;
      absl::StrAppend(&sample.configuration, " setting=", setting);
      side.results.samples.push_back(sample);
    }
  }
  return side;
}

// Returns a side with the samples of both.
Side Joined(Side side, const Side& more) {
  side.results.samples.insert(side.results.samples.end(),
                              more.results.samples.begin(),
                              more.results.samples.end());
  return side;
}

TEST(ComparisonTest, SmallSlowdownIsReportedButDoesNotFail) {
  const auto comparison =
      Compare(SideOf({{1, {100, 101, 102, 103, 104, 105}}}),
              SideOf({{1, {97, 97.97, 98.94, 99.91, 100.88, 101.85}}}), 1);
  EXPECT_EQ(Judge(comparison->overall), Significance::kSlower);
  EXPECT_FALSE(Fails(*comparison, kFivePercent));
  EXPECT_TRUE(Fails(*comparison, 0.98));
  testing::ExpectGolden(ComparisonText(*comparison, 0.98));
}

TEST(ComparisonTest, PairsHaveTheSameRepeat) {
  // The machine became twice as fast during the sweep, for both sides.
  Side b = SideOf({{1, {90, 90, 90, 180, 180, 180}}});
  std::reverse(b.results.samples.begin(), b.results.samples.end());
  const auto comparison =
      Compare(SideOf({{1, {100, 100, 100, 200, 200, 200}}}), b, 1);
  EXPECT_NEAR(comparison->overall.interval->low, 0.9, 1e-9);
  EXPECT_NEAR(comparison->overall.interval->high, 0.9, 1e-9);
}

TEST(ComparisonTest, SinglePairsProveNothing) {
  for (const Speeds& slow : {Speeds{{1, {10}}}, Speeds{{1, {10}}, {2, {10}}}}) {
    Speeds fast = slow;
    for (auto& [ranks, speeds] : fast) speeds = {100};
    const auto comparison = Compare(SideOf(fast), SideOf(slow), 1);
    EXPECT_FALSE(comparison->overall.interval.has_value());
    EXPECT_NEAR(comparison->overall.ratio, 0.1, 1e-12);
    EXPECT_EQ(Judge(comparison->overall), Significance::kNoDifference);
    EXPECT_FALSE(Fails(*comparison, kFivePercent));
    testing::ExpectGolden(ComparisonText(*comparison, kFivePercent));
  }
}

TEST(ComparisonTest, SinglePairsDoNotCountInTheTotal) {
  const Speeds before = {{1, {100, 100, 100}}};
  const Speeds after = {{1, {98, 100, 102}}};
  const auto without = Compare(SideOf(before), SideOf(after), 1);
  const auto with = Compare(Joined(SideOf(before), SideOf({{2, {100}}})),
                            Joined(SideOf(after), SideOf({{2, {10}}})), 1);
  EXPECT_DOUBLE_EQ(with->overall.ratio, without->overall.ratio);
  EXPECT_DOUBLE_EQ(with->overall.interval->low, without->overall.interval->low);
  EXPECT_FALSE(Fails(*with, kFivePercent));
  testing::ExpectGolden(ComparisonText(*with, kFivePercent));
}

TEST(ComparisonTest, ConfigurationsOfOneSideAreNotedAndNoCommonOneIsAnError) {
  const Speeds first = {{1, {100}}, {2, {100}}, {4, {0}}};
  Side b = SideOf({{1, {100}}, {8, {100}}, {4, {100}}});
  b.results.samples.front().host = "other";
  EXPECT_THAT(Compare(SideOf(first), b, 1)->notes,
              ::testing::UnorderedElementsAre(
                  "1 node, 4 ranks: no repeat succeeded on both sides",
                  "1 node, 2 ranks: only in the first",
                  "1 node, 8 ranks: only in the second",
                  "the two ran on different hosts"));
  EXPECT_EQ(Compare(SideOf({first[1], first[2]}), b, 1).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ComparisonTest, ConfigurationThatNoLongerSucceedsFails) {
  const Side a = SideOf({{1, {100, 100}}, {2, {100, 100}}, {4, {100, 100}}});
  const Side b = SideOf({{1, {100, 100}}, {2, {0, 0}}});
  const auto comparison = Compare(a, b, 1);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_TRUE(Fails(*comparison, kFivePercent));
  testing::ExpectGolden(ComparisonText(*comparison, kFivePercent));
  EXPECT_THAT(ComparisonText(*comparison, std::nullopt),
              Not(HasSubstr("FAILS")));
  // It also failed before.
  EXPECT_FALSE(Fails(*Compare(b, b, 1), kFivePercent));
  const auto nothing = Compare(SideOf({{1, {100}}}), SideOf({{1, {0}}}), 1);
  ASSERT_TRUE(nothing.ok()) << nothing.status();
  EXPECT_TRUE(Fails(*nothing, kFivePercent));
  testing::ExpectGolden(ComparisonText(*nothing, kFivePercent));
}

// ---- Settings.

// Of a setting or, without one, of all.
double Ratio(Side a, std::optional<std::string> setting_a, Side b,
             std::optional<std::string> setting_b) {
  a.setting = std::move(setting_a);
  b.setting = std::move(setting_b);
  return Compare(a, b, 1).value().overall.ratio;
}

TEST(ComparisonTest, SettingOfOneSideIsComparedWithTheSameOrTheOnlyOne) {
  const auto with = [](double speed, const std::string& setting) {
    return SideOf({{1, {speed, speed, speed}}}, setting);
  };
  const Side one = Joined(with(100, "old"), with(120, "new"));
  const Side same = Joined(with(60, "new"), with(100, "old"));
  EXPECT_NEAR(Ratio(one, "old", one, "new"), 1.2, 1e-12);
  EXPECT_NEAR(Ratio(one, std::nullopt, one, std::nullopt), 1, 1e-12);
  EXPECT_NEAR(Ratio(same, std::nullopt, one, "new"), 2, 1e-12);
  EXPECT_NEAR(Ratio(one, "new", same, std::nullopt), 0.5, 1e-12);
  EXPECT_NEAR(Ratio(with(40, "x"), std::nullopt, one, "new"), 3, 1e-12);
  EXPECT_NEAR(Ratio(with(40, ""), std::nullopt, one, "new"), 3, 1e-12);
}

TEST(ComparisonTest, IncomparableSidesAreErrors) {
  const std::string program = "command: ['p', '{report}'] items: ";
  Side fresh = SideOf({{1, {1}}}, "new");
  fresh.setting = "new";
  Sample bound = SampleOf(1, 0, 50);
  bound.configuration = "mapping=core";
  bound.mapping = "core";
  Side twice = SideOf({{1, {100}}}, "core");
  twice.results.samples.push_back(bound);
  const std::pair<Side, Side> cases[] = {
      {Measured(program + "'images'"), Measured(program + "'tokens'")},
      {Joined(SideOf({{1, {1}}}, "x"), SideOf({{1, {1}}}, "y")), fresh},
      {SideOf({{1, {100}}}, "core"), twice}};
  for (const auto& [a, b] : cases) {
    const absl::Status status = Compare(a, b, 1).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    testing::ExpectGolden(std::string(status.message()));
  }
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
