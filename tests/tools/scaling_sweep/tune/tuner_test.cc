#include "tools/scaling_sweep/tune/tuner.h"

#include <gmock/gmock.h>

#include <map>
#include <utility>

#include "tests/tools/scaling_sweep/tune/tuner_test.h"

namespace hvdlite::scaling_sweep {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(TunerTest, FindsTheBestCombinationAndTheSettingsThatMatter) {
  machine_.speed = [](const std::string& setting) {
    if (Has(setting, "preset")) return 0.0;  // it fails
    return FastBlas(setting) * (Has(setting, "world=2") ? 1.5 : 1) *
           (Has(setting, "alloc=") ? 0.9 : 1);
  };
  machine_.scatter = 0.01;
  ASSERT_TRUE(Search().ok());
  EXPECT_EQ(Recommended(), "blas=fast, world=2");
  EXPECT_TRUE(result_.finished);
  EXPECT_NEAR(result_.against_launcher.ratio.ratio, 3, 0.1);
  EXPECT_NEAR(result_.against_default.ratio.ratio, 3, 0.1);
  EXPECT_EQ(result_.ranking.front().name, "blas=fast, world=2");
  EXPECT_EQ(result_.ranking.back().name, "preset=socket");
  const std::string text = Text();
  EXPECT_THAT(text,
              ContainsRegex("blas=fast, world=2 / hvdliterun's defaults: [23]"
                            "\\.[0-9]+ \\[[23].*\\], faster \\(8 rounds\\)"));
  EXPECT_THAT(text, ContainsRegex("blas=fast +(1\\.9|2\\.0).* it matters"));
  EXPECT_THAT(text, ContainsRegex("world=2 +1\\.[45].* it matters"));
  EXPECT_THAT(text, ContainsRegex("preset=socket +failed"));
  EXPECT_THAT(text,
              HasSubstr("\nRecommended: blas=fast, world=2\nRun it with\n  "
                        "hvdliterun -np 2 --threads 1 --set BLAS=fast "
                        "prog report.json\n"));
  EXPECT_THAT(text, Not(HasSubstr("CAUTION")));
}

TEST_F(TunerTest, ClearlySlowerWinnerGetsNoLastComparison) {
  machine_.speed = [](const std::string& setting) {
    return setting == "hvdliterun's defaults" ? 100.0 : 50.0;
  };
  ASSERT_TRUE(Search().ok());
  EXPECT_TRUE(result_.finished);
  EXPECT_EQ(Recommended(), "hvdliterun's defaults");
  EXPECT_THAT(out_.str(), Not(HasSubstr("last comparison: ")));
}

TEST_F(TunerTest, FirstRunIsWarmUpAndDoesNotCount) {
  machine_.speed = [this](const std::string& setting) {
    if (machine_.runs.size() == 1) return 40.0;
    return setting == "hvdliterun's defaults" ? 100.0 : 90.0;
  };
  ASSERT_TRUE(Search().ok());
  EXPECT_THAT(out_.str(),
              HasSubstr("settings are tried with: hvdliterun's defaults\n"));
  EXPECT_DOUBLE_EQ(*result_.ranking.back().by_defaults, 0.9);
}

TEST_F(TunerTest, OneFailedRunOfTheDefaultsIsRepeated) {
  int runs_of_defaults = 0;
  machine_.speed = [&](const std::string& setting) {
    const bool fails =
        setting == "hvdliterun's defaults" && ++runs_of_defaults == 4;
    return fails ? 0 : FastBlas(setting);
  };
  ASSERT_TRUE(Search().ok());
  EXPECT_EQ(result_.counts.repeated, 0);
  EXPECT_TRUE(result_.finished);
  EXPECT_EQ(Recommended(), "blas=fast");
}

TEST_F(TunerTest, LaterFailureOfTheDefaultsIsAnError) {
  machine_.speed = [this](const std::string& setting) {
    const bool fails =
        machine_.runs.size() > 9 && setting == "hvdliterun's defaults";
    return fails ? 0 : FastBlas(setting);
  };
  const absl::Status status = Search();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("it fails"));
  EXPECT_LE(machine_.runs.size(), 30u);
  EXPECT_FALSE(result_.finished);
  EXPECT_GT(result_.ranking.size(), 3u);
}

TEST_F(TunerTest, MeasuredWinnerStaysBesideTheCombination) {
  Tune& tune = *spec_.mutable_tune();
  tune.set_candidates(3);
  tune.set_first_repeats(3);
  machine_.speed = [](const std::string& setting) {
    if (setting == "blas=fast, alloc=je") return 50.0;
    return FastBlas(setting) * (Has(setting, "alloc=je") ? 1.1 : 1);
  };
  ASSERT_TRUE(Search().ok());
  EXPECT_EQ(Recommended(), "blas=fast");
}

TEST_F(TunerTest, ResultFromADisturbedMachineIsMarked) {
  machine_.speed = FastBlas;
  machine_.scatter = 0.01;
  machine_.busy = [](int) { return true; };
  ASSERT_TRUE(Search().ok());
  EXPECT_THAT(Recommended(), HasSubstr("blas=fast"));
  EXPECT_EQ(result_.counts.disturbed, result_.counts.runs);
  EXPECT_EQ(result_.counts.repeated, 4);
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("(8 rounds, 8 of "));
  EXPECT_THAT(text,
              HasSubstr("CAUTION: this is based only on disturbed runs: "));
}

TEST_F(TunerTest, DisturbedRunsAreRepeatedAndReported) {
  machine_.speed = FastBlas;
  machine_.busy = [](int run) { return run % 10 == 3; };
  ASSERT_TRUE(Search().ok());
  EXPECT_GT(result_.counts.repeated, 0);
  EXPECT_EQ(result_.counts.repeated, result_.counts.disturbed);
  EXPECT_EQ(result_.against_launcher.paired.disturbed, 0);
  EXPECT_THAT(Text(), ContainsRegex("[0-9]+ runs; [0-9]+ disturbed by other"));
  EXPECT_THAT(Text(), Not(HasSubstr("CAUTION")));
}

TEST_F(TunerTest, BetterCandidateIsFoundDespiteNoise) {
  int found = 0;
  for (int seed = 1; seed <= 20; ++seed) {
    machine_ = {};
    machine_.random.seed(seed);
    machine_.scatter = 0.03;
    machine_.speed = [](const std::string& setting) {
      return Has(setting, "blas=fast") ? 115.0 : 100.0;
    };
    ASSERT_TRUE(Search().ok());
    if (Has(Recommended(), "blas=fast")) ++found;
  }
  EXPECT_GE(found, 19);
}

TEST_F(TunerTest, DefaultsAreRecommendedIfCandidatesAreEqual) {
  constexpr int kSeeds = 100;
  int defaults = 0;
  int covered = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    machine_ = {};
    machine_.random.seed(seed);
    machine_.scatter = 0.03;
    machine_.seconds = [](int) { return 20.0; };
    ASSERT_TRUE(Search().ok());
    const auto& interval = result_.against_launcher.ratio.interval;
    ASSERT_TRUE(interval);
    if (interval->low <= 1 && interval->high >= 1) ++covered;
    if (Recommended() == "hvdliterun's defaults") ++defaults;
  }
  // 95 % of the intervals contain the true ratio; the others are above or below
  // it equally often. LibTorch's defaults are compared, too.
  EXPECT_GE(covered, 88);
  EXPECT_GE(defaults, 90);
  EXPECT_THAT(Text(), HasSubstr("no difference found"));
  EXPECT_THAT(Text(), HasSubstr("Recommended: hvdliterun's defaults, because "
                                "no other setting is surely faster\nRun it "
                                "with\n  hvdliterun -np 1 prog report.json"));
}

TEST_F(TunerTest, IntervalContainsTheTrueRatio) {
  constexpr int kSeeds = 100;
  int covered = 0;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    machine_ = {};
    machine_.random.seed(seed);
    machine_.scatter = 0.05;
    machine_.seconds = [](int) { return 20.0; };
    machine_.speed = [](const std::string& setting) {
      return Has(setting, "world=2") ? 150.0 : 100.0;
    };
    ASSERT_TRUE(Search().ok());
    const auto& interval = result_.against_launcher.ratio.interval;
    ASSERT_TRUE(interval);
    if (interval->low <= 1.5 && interval->high >= 1.5) ++covered;
  }
  EXPECT_GE(covered, 88);
}

TEST_F(TunerTest, LastComparisonUsesNewRounds) {
  machine_.speed = FastBlas;
  SlowFrom("blas=fast", 0.75);
  ASSERT_TRUE(Search().ok());
  EXPECT_EQ(Recommended(), "blas=fast");
  EXPECT_NEAR(result_.against_launcher.ratio.ratio, 1.5, 1e-9);
}

TEST_F(TunerTest, RoundsOfTheLastComparisonAreInterleaved) {
  machine_.speed = FastBlas;
  ASSERT_TRUE(Search().ok());
  // In the last rounds the defaults and the winner are never further apart than
  // one round of all candidates.
  std::map<int, std::pair<double, double>> starts;
  for (const FakeRun& run : machine_.runs) {
    if (run.setting == "hvdliterun's defaults") {
      starts[run.repeat].first = run.start;
    } else if (run.setting == "blas=fast") {
      starts[run.repeat].second = run.start;
    }
  }
  int together = 0;
  for (auto last = starts.rbegin(); together < 8; ++last, ++together) {
    EXPECT_NEAR(last->second.first, last->second.second, 3 * 5.1 + 0.01);
  }
}

TEST_F(TunerTest, HarmfulSettingIsRemoved) {
  // Two ranks are fast in the search, but slow in the last comparison.
  machine_.speed = [](const std::string& setting) {
    return FastBlas(setting) * (Has(setting, "world=2") ? 1.5 : 1) *
           (Has(setting, "alloc") ? 0.9 : 1);
  };
  SlowFrom("world=2", 0.5);
  ASSERT_TRUE(Search().ok());
  EXPECT_EQ(Recommended(), "blas=fast");
  EXPECT_NEAR(result_.against_launcher.ratio.ratio, 2, 1e-9);
  EXPECT_THAT(out_.str(),
              HasSubstr("blas=fast is faster than with all settings\n"
                        "last comparison: blas=fast\n"));
}

TEST_F(TunerTest, LibTorchsDefaultsAreRecommendedIfSurelyFaster) {
  machine_.speed = [](const std::string& setting) {
    return setting == "LibTorch's defaults" ? 300.0 : FastBlas(setting);
  };
  ASSERT_TRUE(Search().ok());
  EXPECT_TRUE(result_.recommended.alone);
  EXPECT_EQ(result_.ranking.front().name, "LibTorch's defaults");
  EXPECT_THAT(Text(), HasSubstr("Recommended: LibTorch's defaults, without "
                                "hvdliterun\nRun it with\n  prog report.json"));
}

TEST_F(TunerTest, HvdliterunsDefaultsAreMeasuredToo) {
  machine_.plan = LaunchPlan{.threads = 1,
                             .openmp = "libgomp",
                             .defaults = {{"MALLOC_MMAP_MAX_", "0"},
                                          {"OPENBLAS_CORETYPE", "Haswell"}}};
  machine_.speed = [](const std::string& setting) {
    return FastBlas(setting) *
           (Has(setting, "without hvdliterun's OpenBLAS") ? 0.25 : 1) *
           (Has(setting, "without hvdliterun's malloc") ? 1.2 : 1);
  };
  machine_.scatter = 0.001;
  machine_.seconds = [](int) { return 1.0; };
  ASSERT_TRUE(Search().ok());
  // A harmful default is reported, but the candidate cannot remove it.
  EXPECT_THAT(Recommended(), HasSubstr("blas=fast"));
  EXPECT_EQ(result_.recommended.less, "");
  const std::string text = Text();
  EXPECT_THAT(text, ContainsRegex("hvdliterun's OpenBLAS kernels "
                                  "\\(OPENBLAS_CORETYPE=Haswell\\) +[34].* "
                                  "it matters"));
  EXPECT_THAT(text,
              ContainsRegex("hvdliterun's malloc \\(MALLOC_MMAP_MAX_=0\\) "
                            "+0.83.* it harms"));
}

TEST_F(TunerTest, PlanAndResultListWhatIsLeftOut) {
  spec_.mutable_batch()->set_size(1);  // of the world
  spec_.mutable_batch()->set_argument(RANK);
  options_.left_out = {{"alloc=tc", "libtc is not here; install it"}};
  ASSERT_TRUE(Search().ok());
  EXPECT_THAT(out_.str(), HasSubstr("left out:\n  alloc=tc: libtc is not here; "
                                    "install it\nplan for "));
  EXPECT_THAT(Text(),
              HasSubstr("Left out:\n  alloc=tc: libtc is not here; install "
                        "it\n  world=2: batch: the world's 1 "));
}

TEST_F(TunerTest, CandidateWithAFailedRunCannotWin) {
  machine_.speed = FastBlas;
  SlowFrom("blas=fast", 0);
  ASSERT_TRUE(Search().ok());
  EXPECT_EQ(Recommended(), "hvdliterun's defaults");
  EXPECT_THAT(Text(), HasSubstr("failed, so they are not compared"));
  // The second time nothing runs, although failed candidates have fewer rounds.
  const size_t runs = machine_.runs.size();
  ASSERT_TRUE(Search().ok());
  EXPECT_EQ(machine_.runs.size(), runs);
}

TEST_F(TunerTest, FailureOfTheDefaultsIsAnError) {
  machine_.speed = [](const std::string&) { return 0.0; };
  const absl::Status status = Search();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("it fails"));
}

TEST_F(TunerTest, InterruptionOfTheLastComparisonIsNoFailure) {
  machine_.speed = [this](const std::string& setting) {
    if (Has(out_.str(), "last comparison: ") && machine_.stop_at < 0) {
      machine_.stop_at = static_cast<int>(machine_.runs.size());
    }
    return FastBlas(setting);
  };
  EXPECT_EQ(Search().code(), absl::StatusCode::kCancelled);
  for (const int later : {0, 1}) {
    const int stop = machine_.stop_at - 1 + later;
    machine_ = {};
    machine_.speed = FastBlas;
    machine_.stop_at = stop;
    out_.str("");
    EXPECT_EQ(Search().code(), absl::StatusCode::kCancelled);
    EXPECT_THAT(out_.str(), HasSubstr("last comparison: blas=fast\n"));
    EXPECT_THAT(Text(), Not(HasSubstr("failed"))) << later;
    EXPECT_THAT(Text(), HasSubstr("blas=fast / hvdliterun's defaults: 2."));
  }
}

TEST_F(TunerTest, InterruptedSearchReportsItsResultAndContinues) {
  machine_.speed = FastBlas;
  ASSERT_TRUE(Search().ok());
  const std::string whole = Text();
  const size_t runs = machine_.runs.size();
  for (const int stop : {0, 1, 5, 20, static_cast<int>(runs) - 5}) {
    machine_ = {};
    machine_.speed = FastBlas;
    machine_.stop_at = stop;
    EXPECT_EQ(Search().code(), absl::StatusCode::kCancelled);
    EXPECT_EQ(Recommended(), "hvdliterun's defaults");
    EXPECT_THAT(Text(), HasSubstr("The search is not finished"));
    if (stop == 20) {
      EXPECT_THAT(Text(), HasSubstr("\n   1  blas=fast"));
      EXPECT_THAT(Text(), HasSubstr("blas=fast / hvdliterun's defaults: 2."));
    }
    machine_.stop_at = -1;
    ASSERT_TRUE(Search().ok());
    EXPECT_EQ(Recommended(), "blas=fast");
    EXPECT_LE(machine_.runs.size(), runs + 12) << stop;
  }
  // If all results are there, nothing runs.
  const size_t now = machine_.runs.size();
  const std::string text = Text();
  ASSERT_TRUE(Search().ok());
  EXPECT_EQ(machine_.runs.size(), now);
  EXPECT_EQ(Text(), text);
}

}  // namespace
}  // namespace hvdlite::scaling_sweep
