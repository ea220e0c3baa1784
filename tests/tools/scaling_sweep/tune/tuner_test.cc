#include "tools/scaling_sweep/tune/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "absl/strings/str_split.h"
#include "tests/testing/fakes/sweep_folder.h"
#include "tests/tools/scaling_sweep/tune/tune_spec.h"
#include "tools/support/text_table.h"

namespace hvdlite::scaling_sweep {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

// With the results of every run there already, nothing has to be run.
class TunerTest : public testing::Test {
 protected:
  // The speed of each candidate that may be asked for, -1: it fails.
  template <typename SpeedOf>
  absl::StatusOr<TuningResult> Tune(const SpeedOf& speed_of) {
    // Line by line it would take long: each goes to the disk.
    EXPECT_TRUE(ResultsFile::Open(folder_.path(), spec_).ok());
    std::ofstream lines(folder_ / kResultsName, std::ios::app);
    Candidate candidate = {.options = std::vector<size_t>(4)};
    candidate.alone = true;
    Fill(lines, candidate, speed_of);
    candidate.alone = false;
    for (size_t& preset = candidate.options[0] = 0; preset < 2; ++preset) {
      for (size_t& blas = candidate.options[1] = 0; blas < 2; ++blas) {
        for (size_t& world = candidate.options[2] = 0; world < 2; ++world) {
          for (size_t& alloc = candidate.options[3] = 0; alloc < 3; ++alloc) {
            for (const char* less : {"", "malloc", "OpenBLAS kernels"}) {
              candidate.less = less;
              Fill(lines, candidate, speed_of);
            }
          }
        }
      }
    }
    lines.close();
    ResultsFile file = ResultsFile::Open(folder_.path(), spec_).value();
    const support::SignalPipe stop;
    SweepRunner runner({.spec = spec_,
                        .launcher = launcher_,
                        .machine = {},
                        .environment = base::FakeEnvironment({})},
                       file, stop, out_);
    return TuneSettings(spec_, dimensions_, runner, file, out_);
  }

  Spec spec_ = TuneSpec();
  Dimensions dimensions_ = DimensionsFrom(spec_);
  std::string launcher_ = "/no/such/launcher";
  std::ostringstream out_;
  // Of all repeats but the first; none: as the first.
  std::function<double(const Candidate&, int repeat)> later_;

  SweepFolder folder_;

 private:
  template <typename SpeedOf>
  void Fill(std::ofstream& lines, const Candidate& candidate,
            const SpeedOf& speed_of) {
    const absl::StatusOr<Configuration> configuration =
        ConfigurationOf(spec_, dimensions_, candidate);
    if (!configuration.ok()) return;
    // Rounds need up to 8, each of up to three last comparisons 5.
    for (int repeat = 0; repeat < 23; ++repeat) {
      Sample sample;
      sample.configuration = Key(*configuration);
      sample.repeat = repeat;
      const double speed = later_ && repeat > 0 ? later_(candidate, repeat)
                                                : speed_of(candidate);
      // A scatter of 1 %.
      if (speed > 0) {
        sample.items_per_second = speed * (1 + 0.01 * (repeat % 3));
      }
      lines << ToJsonLine(sample) << "\n";
    }
  }
};

TEST_F(TunerTest, FindsTheBestCombinationAndSaysWhichSettingsMatter) {
  const auto result = Tune([](const Candidate& candidate) {
    if (candidate.alone) return 100.0;
    if (candidate.options[0] == 1) return -1.0;  // the preset fails
    return 100 * (candidate.options[1] == 1 ? 4 : 1) *
           (candidate.options[2] == 1 ? 1.5 : 1) *
           (candidate.options[3] == 1 ? 0.9 : 1) *
           (candidate.options[3] == 2 ? 1.0001 : 1);
  });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->winning.options[1], 1u);
  EXPECT_EQ(result->winning.options[2], 1u);
  EXPECT_NE(result->winning.options[3], 1u);
  EXPECT_NEAR(result->against_default.ratio.ratio, 6, 0.01);
  for (const Reason& reason : result->settings) {
    ASSERT_TRUE(reason.compared) << reason.name;
    if (reason.name == "blas=fast") {
      EXPECT_NEAR(reason.ratio.ratio, 4, 1e-9);
    } else if (reason.name == "world=2") {
      EXPECT_NEAR(reason.ratio.ratio, 1.5, 1e-9);
    }
  }
  EXPECT_EQ(result->ranking.front().candidate, result->winning);
  const std::string text = TuningText(*result, spec_, "hvdliterun");
  EXPECT_THAT(text, HasSubstr("hvdliterun -np 2 --threads 1 --set BLAS=fast"));
  EXPECT_THAT(text, HasSubstr(" prog report.json"));
  EXPECT_THAT(text, testing::ContainsRegex("blas=fast +4.000 .* it matters"));
  EXPECT_THAT(text, testing::ContainsRegex("preset=socket +failed"));
}

TEST_F(TunerTest, ASettingThatHarmsTheWinnerIsGivenUp) {
  // Two ranks are good alone, but bad for the other two settings together,
  // which nobody has tried on one.
  const auto result = Tune([](const Candidate& candidate) {
    const bool fast = candidate.options[1] == 1;
    const bool two = candidate.options[2] == 1;
    const bool je = candidate.options[3] == 1;
    if (candidate.alone || candidate.options[0] == 1) return 50.0;
    if (candidate.options[3] == 2) return 60.0;
    if (fast && je) return two ? 200.0 : 300.0;
    return (fast || je ? 120.0 : 100.0) + (two ? 10.0 : 0.0);
  });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(NameOf(dimensions_, result->winning), "blas=fast, alloc=je");
}

TEST_F(TunerTest, TheFastestWorldIsFoundHoweverFewCandidatesThereAre) {
  spec_.mutable_tune()->set_candidates(1);
  const auto result = Tune([](const Candidate& candidate) {
    return candidate.options[2] == 1 ? 5043.0 : 3000.0;
  });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(NameOf(dimensions_, result->winning), "world=2");
  EXPECT_THAT(out_.str(), HasSubstr("worlds: 3 candidates, 2 runs each\n"
                                    "settings are tried with: world=2\n"
                                    "round 1: 4 candidates, "));
  EXPECT_THAT(result->untried,
              testing::ElementsAre("blas=fast", "alloc=je", "alloc=tc"));
  EXPECT_THAT(TuningText(*result, spec_, "hvdliterun"),
              HasSubstr("\nNot tried: blas=fast, alloc=je, alloc=tc ("));
}

TEST_F(TunerTest, ThePlanSaysWhatIsTriedAndLaterHowLongItMayTake) {
  spec_.set_time_limit_seconds(60);
  const std::string text = PlanText(spec_, dimensions_);
  EXPECT_THAT(text, HasSubstr("1. worlds, 2 runs each: LibTorch's defaults, "
                              "hvdliterun's defaults, world=2\n"));
  EXPECT_THAT(text, HasSubstr("up to 9 candidates, 1 run each: presets: preset "
                              "(socket); in the fastest world: blas "
                              "(fast),\n     alloc (je, tc);"));
  // 3 worlds twice; 9 + 6 + 2 * 3 + 4 * 2 in rounds; 5 each of 8, 9, ... 12
  // and of twice 8.
  EXPECT_THAT(text, HasSubstr("At most 35 runs until 3., 365 in all, each of "
                              "60 s at most (--time-limit);"));
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    EXPECT_LE(line.size(), support::kTextTableWidth);
  }
  std::vector<Sample> samples(2);
  EXPECT_EQ(LeftText(spec_, dimensions_, {}), "");
  samples[0].seconds = 2;
  samples[1].seconds = 4;
  samples[1].repeat = 1;
  EXPECT_EQ(LeftText(spec_, dimensions_, samples),
            "runs left, at most: 363; at 3 s each, as until now: 18:09\n");
  samples[1].repeat = 0;  // the first once more
  EXPECT_THAT(LeftText(spec_, dimensions_, samples), HasSubstr("most: 364;"));
  for (int repeat = 0; repeat < 365; ++repeat) {
    samples.emplace_back().repeat = repeat;
  }
  EXPECT_EQ(LeftText(spec_, dimensions_, samples), "");
}

TEST_F(TunerTest, BudgetsGrowWhileCandidatesHalve) {
  ASSERT_TRUE(Tune([](const Candidate& candidate) {
                return 100.0 + static_cast<double>(candidate.options[1]);
              }).ok());
  EXPECT_THAT(out_.str(), HasSubstr("round 1: 9 candidates, 1 run each\n"
                                    "round 2: 5 candidates, 2 runs each\n"
                                    "round 3: 3 candidates, 4 runs each\n"
                                    "round 4: 2 candidates, 8 runs each\n"
                                    "last comparison: "));
}

TEST_F(TunerTest, ARoundDoesNotLookAtRunsOfLaterOnes) {
  // So that a tuning that is repeated, with all its results there, takes the
  // same way: tcmalloc was the slowest in the first round.
  const auto has_tc = [](const Candidate& candidate) {
    return !candidate.alone && candidate.options[3] == 2;
  };
  later_ = [&](const Candidate& candidate, int) {
    return has_tc(candidate) ? 1000.0 : 100.0;
  };
  const auto result = Tune([&](const Candidate& candidate) {
    return has_tc(candidate) ? 10.0 : 100.0;
  });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(has_tc(result->winning));
}

// Of 9 candidates; the last comparison has the repeats from here.
constexpr int kRepeatsOfRounds = 8;

double FastBlas(const Candidate& candidate) {
  return candidate.options[1] == 1 ? 200 : 100;
}

TEST_F(TunerTest, TheLastComparisonJudgesByRunsOfItsOwn) {
  later_ = [](const Candidate& candidate, int repeat) {
    if (repeat < kRepeatsOfRounds) return FastBlas(candidate);
    return candidate.options[1] == 1 ? 150.0 : 100.0;
  };
  const auto result = Tune(FastBlas);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->winning.options[1], 1u);
  EXPECT_NEAR(result->against_default.ratio.ratio, 1.5, 1e-9);
  EXPECT_NEAR(result->against_launcher.ratio.ratio, 1.5, 1e-9);
}

TEST_F(TunerTest, EachLastComparisonHasRunsOfItsOwn) {
  // Two ranks look good until the first last comparison.
  const auto fast_two = [](const Candidate& candidate) {
    return FastBlas(candidate) * (candidate.options[2] == 1 ? 1.5 : 1) *
           (candidate.options[3] == 0 ? 1 : 0.9);
  };
  later_ = [&](const Candidate& candidate, int repeat) {
    if (repeat < kRepeatsOfRounds) return fast_two(candidate);
    if (candidate.options[2] == 1) return 50.0;
    if (candidate.options[1] == 0) return 100.0;
    return repeat < kRepeatsOfRounds + 5 ? 200.0 : 130.0;
  };
  const auto result = Tune(fast_two);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(NameOf(dimensions_, result->winning), "blas=fast");
  EXPECT_NEAR(result->against_default.ratio.ratio, 1.3, 1e-9);
  EXPECT_THAT(out_.str(), HasSubstr("last comparison: blas=fast, world=2\n"
                                    "last comparison: blas=fast\n"));
}

TEST_F(TunerTest, LibTorchsDefaultsWinIfTheLastComparisonFindsThemFaster) {
  later_ = [](const Candidate& candidate, int repeat) {
    if (repeat < kRepeatsOfRounds) return FastBlas(candidate);
    return candidate.alone ? 300.0 : FastBlas(candidate);
  };
  const auto result = Tune(FastBlas);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->winning.alone);
  EXPECT_TRUE(result->ranking.front().candidate.alone);
  EXPECT_THAT(TuningText(*result, spec_, "hvdliterun"),
              HasSubstr("LibTorch's defaults are the best"));
}

TEST_F(TunerTest, HvdliterunsDefaultsWinIfTheLastComparisonFindsThemFaster) {
  // Without any one of its settings, the winner is not faster.
  const auto changed = [](const Candidate& candidate) {
    return std::count_if(candidate.options.begin(), candidate.options.end(),
                         [](size_t option) { return option != 0; });
  };
  const auto two_changes = [&](const Candidate& candidate) {
    return 100.0 +
           static_cast<double>(std::min<int64_t>(2, changed(candidate)));
  };
  later_ = [&](const Candidate& candidate, int repeat) {
    if (repeat < kRepeatsOfRounds) return two_changes(candidate);
    return candidate.alone || changed(candidate) > 0 ? 100.0 : 300.0;
  };
  const auto result = Tune(two_changes);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(NameOf(dimensions_, result->winning), "hvdliterun's defaults");
  EXPECT_NEAR(result->against_default.ratio.ratio, 3, 1e-9);
  EXPECT_THAT(TuningText(*result, spec_, "hvdliterun"),
              HasSubstr("\n  hvdliterun -np 1 prog report.json"));
}

// A launcher whose every dry run says that it sets these by itself.
std::string LauncherIn(const SweepFolder& folder) {
  const std::string path = folder / "launcher";
  std::ofstream(path) << R"(#!/bin/sh
tr -d '\n' <<END
{"format":1,"openmp":"libgomp","environment":[
{"name":"MALLOC_MMAP_MAX_","value":"0","source":"default"}],"hosts":[
{"names":["localhost"],"planned":true,"ranks":[
{"threads":1,"oversubscribed":false,"environment":[]}]}],
"openblas_core_here":"Haswell"}
END
)";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

double SlowWithoutKernels(const Candidate& candidate) {
  if (candidate.alone) return 50;
  return FastBlas(candidate) *
         (candidate.less == "OpenBLAS kernels" ? 0.25 : 1) *
         (candidate.less == "malloc" ? 1.2 : 1);
}

TEST_F(TunerTest, WhatHvdliterunDoesByItselfIsJudgedToo) {
  launcher_ = LauncherIn(folder_);
  const auto result = Tune(SlowWithoutKernels);
  ASSERT_TRUE(result.ok()) << result.status();
  // What harms is told, but is not the candidate's to give up.
  EXPECT_EQ(result->winning.less, "");
  EXPECT_EQ(result->winning.options[1], 1u);
  const std::string text = TuningText(*result, spec_, "hvdliterun");
  EXPECT_THAT(text, ContainsRegex("blas=fast +2.000 .* it matters"));
  EXPECT_THAT(text, ContainsRegex("hvdliterun's OpenBLAS kernels "
                                  "\\(OPENBLAS_CORETYPE=Haswell\\) +4.000 .* "
                                  "it matters"));
  EXPECT_THAT(text,
              ContainsRegex("hvdliterun's malloc \\(MALLOC_MMAP_MAX_=0\\) "
                            "+0.833 .* it harms"));
  EXPECT_THAT(text, HasSubstr("It is fast because of: hvdliterun's OpenBLAS "
                              "kernels (OPENBLAS_CORETYPE=Haswell) (4 times), "
                              "blas=fast (2 times)\n"));
  EXPECT_THAT(text, HasSubstr("hvdliterun's defaults, by LibTorch's: 2.000 ["));
}

TEST_F(TunerTest, HvdliterunsDefaultsThatWinAreExplained) {
  launcher_ = LauncherIn(folder_);
  later_ = [](const Candidate& candidate, int repeat) {
    const double speed = SlowWithoutKernels(candidate);
    // What was good in the rounds is not in the last comparison.
    return repeat >= kRepeatsOfRounds && candidate.options[1] == 1 ? speed / 4
                                                                   : speed;
  };
  const auto result = Tune(SlowWithoutKernels);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(NameOf(dimensions_, result->winning), "hvdliterun's defaults");
  EXPECT_THAT(TuningText(*result, spec_, "hvdliterun"),
              HasSubstr("It is fast because of: hvdliterun's OpenBLAS kernels "
                        "(OPENBLAS_CORETYPE=Haswell) (4 times)\n"));
}

TEST_F(TunerTest, CandidatesThatTheSpecDoesNotAllowAreLeftOut) {
  spec_.mutable_batch()->set_size(1);  // of the world
  spec_.mutable_batch()->set_argument(RANK);
  const auto result = Tune(FastBlas);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->winning.options[1], 1u);
  EXPECT_EQ(result->winning.options[2], 0u);
  EXPECT_THAT(out_.str(),
              HasSubstr("left out: world=2: batch: the world's 1 cannot be "
                        "divided equally among 2 ranks\n"));
  EXPECT_THAT(out_.str(), HasSubstr("round 1: 8 candidates, "));
}

TEST_F(TunerTest, ACandidateOfWhichARunFailedCannotWin) {
  later_ = [](const Candidate& candidate, int repeat) {
    return candidate.options[1] == 1 && repeat == 1 ? -1.0
                                                    : FastBlas(candidate);
  };
  const auto result = Tune(FastBlas);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->winning.options[1], 0u);
}

TEST_F(TunerTest, AWinnerThatFailsInTheLastComparisonDoesNotWin) {
  later_ = [](const Candidate& candidate, int repeat) {
    return candidate.options[1] == 1 && repeat == kRepeatsOfRounds
               ? -1.0
               : FastBlas(candidate);
  };
  const auto result = Tune(FastBlas);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(NameOf(dimensions_, result->winning), "hvdliterun's defaults");
  EXPECT_THAT(out_.str(), HasSubstr(" failed; hvdliterun's defaults win\n"));
}

TEST_F(TunerTest, TheDefaultsMayBeTheBest) {
  const auto result = Tune([](const Candidate& candidate) {
    return candidate.alone ? 100.0 : 50.0;
  });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->winner.alone);
  EXPECT_THAT(TuningText(*result, spec_, "hvdliterun"),
              HasSubstr("LibTorch's defaults are the best"));
}

TEST_F(TunerTest, IfAllFailThatIsAnError) {
  const auto result = Tune([](const Candidate&) { return -1.0; });
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace hvdlite::scaling_sweep
