#include "trainers/progress_line.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdio>

namespace hvdlite::trainers {
namespace {

// A line in memory, and a clock that stands still.
class ProgressLineTest : public testing::Test {
 protected:
  ProgressLineTest() : out_(open_memstream(&text_, &bytes_)) {}
  ~ProgressLineTest() override {
    std::fclose(out_);
    free(text_);
  }

  ProgressLine::Options Options(bool shown) {
    return {.out = out_,
            .shown = shown,
            .first_step = 100,
            .last_step = 300,
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

TEST_F(ProgressLineTest, TellsStepsLossAndTimeLeft) {
  ProgressLine line(Options(true));
  now_ += 40;
  line.Show(150, 1.25);
  EXPECT_EQ(Written(), "\r\033[Kstep 150/300, 50%, loss 1.2500, ETA 2:00");
}

TEST_F(ProgressLineTest, IsWrittenAFewTimesASecondAtMost) {
  ProgressLine line(Options(true));
  now_ += 1;
  line.Show(101, 1);
  const std::string once = Written();
  now_ += 0.2;
  line.Show(102, 1);
  EXPECT_EQ(Written(), once);
  now_ += 0.2;
  line.Show(103, 1);
  EXPECT_NE(Written(), once);
}

TEST_F(ProgressLineTest, IsClearedOnceWhereItIsVisible) {
  ProgressLine line(Options(true));
  line.Clear();
  EXPECT_EQ(Written(), "");
  now_ += 1;
  line.Show(101, 1);
  const std::string shown = Written();
  line.Clear();
  line.Clear();
  EXPECT_EQ(Written(), shown + "\r\033[K");
}

TEST_F(ProgressLineTest, IsNotWrittenToALog) {
  ProgressLine line(Options(false));
  now_ += 1;
  line.Show(101, 1);
  line.Clear();
  EXPECT_EQ(Written(), "");
}

TEST(ShowsProgressTest, NotUnderALauncher) {
  ASSERT_EQ(setenv("OMPI_COMM_WORLD_SIZE", "2", 1), 0);
  EXPECT_FALSE(ShowsProgress());
  unsetenv("OMPI_COMM_WORLD_SIZE");
}

TEST(FormatDurationTest, HasMinutesAndHoursWhereThereAreSome) {
  EXPECT_EQ(FormatDuration(0.4), "0");
  EXPECT_EQ(FormatDuration(59.4), "59");
  EXPECT_EQ(FormatDuration(59.6), "1:00");
  EXPECT_EQ(FormatDuration(83), "1:23");
  EXPECT_EQ(FormatDuration(7384), "2:03:04");
}

}  // namespace
}  // namespace hvdlite::trainers
