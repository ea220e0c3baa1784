// Tests that the Tuner respects its time limit.
#include <gmock/gmock.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "support/text_table.h"
#include "tests/tools/scaling_sweep/tune/tuner_test.h"

namespace hvdlite::scaling_sweep {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(TunerTest, PlanFollowsAMeasuredRunAndIsKept) {
  machine_.speed = FastBlas;
  ASSERT_TRUE(Search().ok());
  const std::string told = out_.str();
  EXPECT_THAT(told,
              HasSubstr("hvdliterun's defaults run once, to measure the time "
                        "of a run\n[1] hvdliterun's defaults: "));
  EXPECT_THAT(told,
              HasSubstr("plan for 15:00 (--minutes), with 5.3 s per run, as "
                        "measured:\n"));
  EXPECT_THAT(told, ContainsRegex("About [0-9]+ runs, [0-9]+:[0-9]+; with"));
  for (const absl::string_view line : absl::StrSplit(told, '\n')) {
    if (absl::StartsWith(line, " ")) {
      EXPECT_LE(line.size(), support::kTextTableWidth);
    }
  }
  int planned = 0;
  ASSERT_TRUE(
      absl::SimpleAtoi(told.substr(told.find("About ") + 6, 3), &planned));
  // TuneSpec has fewer candidates than the effort allows.
  EXPECT_LE(result_.counts.runs, planned);
  EXPECT_GE(result_.counts.runs, planned / 3);
}

TEST_F(TunerTest, TimeLimitHoldsForAnyDurationOfARun) {
  for (const double minutes : {3.0, 15.0}) {
    for (const double seconds : {0.2, 1.0, 3.0, 10.0, 20.0, 60.0, 85.0}) {
      for (const bool busy : {false, true}) {
        // The first run is repeated if it is disturbed.
        if (minutes * 60 < (busy ? 12 : 10) * seconds) continue;
        machine_ = {};
        machine_.speed = FastBlas;
        machine_.seconds = [=](int) { return seconds; };
        machine_.busy = [=](int) { return busy; };
        options_.minutes = minutes;
        const absl::Status status = Search();
        ASSERT_TRUE(status.ok()) << seconds << " s: " << status;
        EXPECT_LE(machine_.now, 60 * minutes) << seconds << " s";
        EXPECT_TRUE(result_.against_launcher.ratio.interval) << seconds;
      }
    }
  }
}

TEST_F(TunerTest, TimeLimitHoldsIfLaterRunsTakeLonger) {
  dimensions_ = BuiltInDimensions({.cores = 16, .cpu_flags = {"avx2", "fma"}},
                                  "train_mnist");
  machine_.scatter = 0.05;
  machine_.seconds = [](int run) { return run == 0 ? 5.0 : 25.0; };
  ASSERT_TRUE(Search().ok());
  EXPECT_LE(machine_.now, 15 * 60);
  EXPECT_TRUE(result_.against_launcher.ratio.interval);
}

TEST_F(TunerTest, TimeLimitHoldsHoweverSlowOtherCandidatesAre) {
  for (const std::string slow :
       {"world=2", "LibTorch's", "blas=", "alloc", "=", "less", "'"}) {
    for (const double seconds : {0.2, 3.0, 10.0, 30.0, 60.0, 90.0}) {
      machine_ = {};
      machine_.plan = LaunchPlan{
          .threads = 1, .openmp = "libgomp", .defaults = {{"MALLOC", "0"}}};
      machine_.speed = FastBlas;
      machine_.seconds = [=, this](int run) {
        return seconds *
               (run > 0 && Has(machine_.runs[run].setting, slow) ? 4.5 : 1);
      };
      const absl::Status status = Search();
      ASSERT_TRUE(status.ok()) << seconds << " s: " << status;
      EXPECT_LE(machine_.now, 60 * 15) << seconds << " s, slow: " << slow;
      if (seconds <= 30 && !Has("blas=fast", slow)) {
        EXPECT_TRUE(result_.against_launcher.compared) << seconds << slow;
      }
    }
  }
}

TEST_F(TunerTest, HangingProgramTakesOnlyTheGivenTime) {
  for (const double seconds : {10.0, 60.0, 90.0}) {
    machine_ = {};
    machine_.seconds = [=, this](int run) {
      const std::string& setting = machine_.runs[run].setting;
      return setting == "hvdliterun's defaults" ? seconds : 1e6;
    };
    ASSERT_TRUE(Search().ok());
    EXPECT_LE(machine_.now, 60 * 15) << seconds << " s";
    EXPECT_EQ(Recommended(), "hvdliterun's defaults");
  }
}

TEST_F(TunerTest, WithoutTimeForTheLastComparisonNothingIsRecommended) {
  machine_.speed = FastBlas;
  machine_.seconds = [this](int run) {
    return run == 0 || !Has(machine_.runs[run].setting, "'") ? 60.0 : 250.0;
  };
  ASSERT_TRUE(Search().ok());
  EXPECT_LE(machine_.now, 60 * 15);
  EXPECT_EQ(Recommended(), "hvdliterun's defaults");
  EXPECT_THAT(Text(), HasSubstr("had no time for the last comparison"));
  EXPECT_THAT(Text(), Not(HasSubstr("failed")));
}

TEST_F(TunerTest, ProgramThatTakesTooLongIsAnError) {
  machine_.seconds = [](int) { return 110.0; };
  const absl::Status status = Search();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("a run of the defaults takes 1:50, and a search needs "
                        "at least 9 runs"));
  EXPECT_EQ(machine_.runs.size(), 1u);
}

TEST_F(TunerTest, ProgramThatTakesAllTheTimeNeedsMoreMinutes) {
  machine_.seconds = [](int) { return 1200.0; };
  const absl::Status status = Search();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--minutes"));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("time-limit")));
  EXPECT_EQ(machine_.runs.size(), 1u);
  EXPECT_LE(machine_.now, 60 * 15);
}

TEST_F(TunerTest, SlowestCandidatesAreLeftOutIfTimeIsShort) {
  Tune& tune = *spec_.mutable_tune();
  tune.set_candidates(6);
  tune.set_first_repeats(2);
  const auto speed = [](const std::string& setting) {
    return setting == "alloc=tc" ? 150.0 : 100.0;
  };
  for (const double factor : {1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0}) {
    machine_ = {};
    machine_.speed = speed;
    machine_.seconds = [=, this](int run) {
      return 20.0 * (machine_.runs[run].setting == "hvdliterun's defaults"
                         ? 1
                         : factor);
    };
    out_.str("");
    ASSERT_TRUE(Search().ok());
    EXPECT_THAT(Recommended(), HasSubstr("alloc=tc")) << factor << out_.str();
  }
}

TEST_F(TunerTest, LongerSearchTriesMore) {
  spec_.mutable_tune()->clear_dimension();
  dimensions_ = BuiltInDimensions({.cores = 16, .cpu_flags = {"avx2", "fma"}},
                                  "train_mnist");
  machine_.seconds = [](int) { return 30.0; };
  ASSERT_TRUE(Search().ok());
  const size_t untried = result_.untried.size();
  EXPECT_GT(untried, 0u);
  EXPECT_THAT(Text(), HasSubstr("more --minutes); most combinations"));
  machine_.runs.clear();
  options_.minutes = 120;
  ASSERT_TRUE(Search().ok());
  EXPECT_LT(result_.untried.size(), untried);
}

TEST_F(TunerTest, ThreeRoundsOfTwoSufficeToRemoveASetting) {
  spec_.mutable_tune()->set_final_repeats(3);
  for (const double later : {1.0, 1.2, 1.4, 1.6}) {
    machine_ = {};
    out_.str("");
    machine_.seconds = [=, this](int) {
      return Has(out_.str(), "last comparison: ") ? 15 * later : 15.0;
    };
    machine_.speed = [](const std::string& setting) {
      return FastBlas(setting) * (Has(setting, "world=2") ? 1.5 : 1) *
             (Has(setting, "alloc") ? 0.9 : 1);
    };
    SlowFrom("world=2", 0.5);
    ASSERT_TRUE(Search().ok());
    EXPECT_EQ(Recommended(), "blas=fast") << later;
    EXPECT_LE(machine_.now, 60 * 15);
  }
}

}  // namespace
}  // namespace hvdlite::scaling_sweep
