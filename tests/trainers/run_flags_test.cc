#include "trainers/run_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>

#include "support/input_error.h"

namespace hvdlite::trainers {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Of = BatchSize::Of;

// Parses the flags with this default.
BatchSize Parsed(const std::string& flags, BatchSize batch) {
  CLI::App app;
  AddBatchSizeFlags(app, batch, "Images", "Training");
  app.parse(flags);
  return batch;
}

TEST(BatchSizeTest, IsPerRankOrForAllRanks) {
  const BatchSize each = {.count = 8, .of = Of::kRank};
  EXPECT_EQ(each.PerRank(4), 8);
  EXPECT_EQ(each.OfAllRanks(4), 32);
  const BatchSize all = {.count = 8, .of = Of::kAllRanks};
  EXPECT_EQ(all.PerRank(4), 2);
  EXPECT_EQ(all.OfAllRanks(4), 8);
}

TEST(BatchSizeTest, SizeThatIsNotDivisibleIsAnError) {
  const BatchSize all = {.count = 8, .of = Of::kAllRanks};
  EXPECT_THAT([&] { all.PerRank(3); },
              ThrowsMessage<support::InputError>(
                  HasSubstr("--global-batch-size 8 is not divisible by 3 "
                            "ranks")));
  EXPECT_EQ(all.OfAllRanks(3), 8);
}

TEST(BatchSizeTest, LessThanOneSamplePerRankIsAnError) {
  const BatchSize all = {.count = 8, .of = Of::kAllRanks};
  EXPECT_EQ(all.LargestPart(3), 3);
  EXPECT_EQ(all.LargestPart(8), 1);
  EXPECT_THAT(
      [&] { all.LargestPart(9); },
      ThrowsMessage<support::InputError>(HasSubstr(
          "--global-batch-size 8 is less than the number of ranks, 9")));
}

TEST(BatchSizeTest, ExplicitFlagsMeanTheSameForEveryTrainer) {
  for (const Of of : {Of::kRank, Of::kAllRanks}) {
    const BatchSize standard = {.count = 20, .of = of};
    EXPECT_EQ(Parsed("", standard), standard);
    EXPECT_EQ(Parsed("--batch-size-per-rank 5", standard),
              (BatchSize{.count = 5, .of = Of::kRank}));
    EXPECT_EQ(Parsed("--global-batch-size 6", standard),
              (BatchSize{.count = 6, .of = Of::kAllRanks}));
    EXPECT_THROW(
        Parsed("--batch-size-per-rank 5 --global-batch-size 6", standard),
        CLI::ParseError);
    EXPECT_THROW(Parsed("--batch-size 0", standard), CLI::ParseError);
  }
}

TEST(BatchSizeTest, ShortFlagIsPerRankForEveryTrainer) {
  for (const Of of : {Of::kRank, Of::kAllRanks}) {
    EXPECT_EQ(Parsed("--batch-size 5", {.count = 20, .of = of}),
              (BatchSize{.count = 5, .of = Of::kRank}));
  }
}

}  // namespace
}  // namespace hvdlite::trainers
