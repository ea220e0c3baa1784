#include "support/progress_line.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace hvdlite::support {
namespace {

// A line in memory, and a clock that tests set.
class ProgressLineTest : public ::testing::Test {
 protected:
  ProgressLineTest() : out_(open_memstream(&text_, &bytes_)) {}
  ~ProgressLineTest() override {
    std::fclose(out_);
    free(text_);
  }

  ProgressLine::Options Options(ProgressStyle style) {
    return {.item = "step",
            .items = "steps",
            .style = style,
            .first = 100,
            .tells_first = true,
            .out = out_,
            .seconds = [this] { return now_; }};
  }
  std::string Written() {
    std::fflush(out_);
    return {text_, bytes_};
  }

  double now_ = 1000;

 private:
  char* text_ = nullptr;
  size_t bytes_ = 0;
  std::FILE* out_;
};

TEST_F(ProgressLineTest, ShowsStepsLossAndTimeLeft) {
  ProgressLine line(Options(ProgressStyle::kTerminal));
  now_ += 40;
  line.Show(150, 300, 1.25);
  EXPECT_EQ(Written(),
            "\r\033[Kstep 150/300, 50%, loss 1.2500, 1.25 "
            "steps/s, ETA 2:00");
}

TEST_F(ProgressLineTest, PausesCountInTheTimeLeftButNotInTheRate) {
  ProgressLine line(Options(ProgressStyle::kTerminal));
  now_ += 20;
  line.Pause();
  now_ += 15;  // an evaluation
  line.Resume();
  line.Resume();
  now_ += 20;
  line.LeaveOut(5);  // part of it: a checkpoint
  line.Show(170, 240);
  EXPECT_EQ(Written(), "\r\033[Kstep 170/240, 70%, 2 steps/s, ETA 55 s");
}

TEST_F(ProgressLineTest, IsWrittenAtMostAFewTimesASecond) {
  ProgressLine line(Options(ProgressStyle::kTerminal));
  now_ += 1;
  line.Show(101, 300, 1);
  const std::string once = Written();
  now_ += 0.2;
  line.Show(102, 300, 1);
  EXPECT_EQ(Written(), once);
  now_ += 0.2;
  line.Show(103, 300, 1);
  EXPECT_NE(Written(), once);
}

TEST_F(ProgressLineTest, VisibleLineIsClearedOnce) {
  ProgressLine line(Options(ProgressStyle::kTerminal));
  line.Clear();
  EXPECT_EQ(Written(), "");
  now_ += 1;
  line.Show(101, 300, 1);
  const std::string shown = Written();
  line.Clear();
  line.Clear();
  EXPECT_EQ(Written(), shown + "\r\033[K");
}

TEST_F(ProgressLineTest, StyleNoneWritesNothing) {
  ProgressLine line(Options(ProgressStyle::kNone));
  now_ += 1;
  line.Show(101, 300, 1);
  line.Clear();
  EXPECT_EQ(Written(), "");
}

TEST_F(ProgressLineTest, LogShowsTheFirstStepThenGrowingIntervals) {
  ProgressLine line(Options(ProgressStyle::kLog));
  const auto lines = [this] {
    const std::string text = Written();
    return std::count(text.begin(), text.end(), '\n');
  };
  now_ += 2;
  line.Show(101, 300, 1.5);
  EXPECT_EQ(Written(),
            "step 101/300, 33%, loss 1.5000, 0.5 steps/s, ETA 6:38\n");
  now_ += 9.5;
  line.Show(110, 300, 1);
  EXPECT_EQ(lines(), 1);
  now_ += 1;
  line.Show(111, 300, 1);
  EXPECT_EQ(lines(), 2);
  now_ += 988;  // 1000 s after the start, the next is due 100 s later
  line.Show(200, 300, 1);
  EXPECT_EQ(lines(), 3);
  now_ += 90;
  line.Show(210, 300, 1);
  EXPECT_EQ(lines(), 3);
  now_ += 25;
  line.Show(211, 300, 1);
  EXPECT_EQ(lines(), 4);
  line.Clear();
  EXPECT_EQ(Written().find('\033'), std::string::npos);
}

TEST_F(ProgressLineTest, LogOmitsShortWork) {
  ProgressLine line({.item = "evaluating: batch",
                     .items = "batches",
                     .style = ProgressStyle::kLog,
                     .out = Options(ProgressStyle::kLog).out,
                     .seconds = [this] { return now_; }});
  now_ += 9;
  line.Show(1, 8);
  EXPECT_EQ(Written(), "");
  now_ += 7;
  line.Show(2, 8);
  EXPECT_EQ(Written(),
            "evaluating: batch 2/8, 25%, 0.125 batches/s, ETA 48 s\n");
}

TEST_F(ProgressLineTest, LargeRatesAreWholeNumbers) {
  ProgressLine line({.item = "image",
                     .items = "images",
                     .style = ProgressStyle::kTerminal,
                     .out = Options(ProgressStyle::kTerminal).out,
                     .seconds = [this] { return now_; }});
  now_ += 10;
  line.Show(20000, 60000);
  EXPECT_EQ(Written(),
            "\r\033[Kimage 20000/60000, 33%, 2000 images/s, ETA 20 s");
}

TEST(FormatDurationTest, MinutesAndHoursAppearOnlyIfNeeded) {
  EXPECT_EQ(FormatDuration(0.4), "0 s");
  EXPECT_EQ(FormatDuration(59.4), "59 s");
  EXPECT_EQ(FormatDuration(59.6), "1:00");
  EXPECT_EQ(FormatDuration(83), "1:23");
  EXPECT_EQ(FormatDuration(7384), "2:03:04");
}

}  // namespace
}  // namespace hvdlite::support
