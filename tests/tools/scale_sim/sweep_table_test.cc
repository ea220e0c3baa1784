#include "tools/scale_sim/sweep_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/tools/scale_sim/tables.h"
#include "tools/scale_sim/epoch_pages.h"

namespace hvdlite::scale_sim {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kTitles[] =
    "setting,mapping,nodes,ranks,threads,oversubscribed,"
    "items_per_second_median,interval_low,interval_high,epoch_seconds\n";

// As scaling_sweep writes it.
std::string Line(const std::string& setting, int nodes, int ranks,
                 const std::string& speed, const std::string& seconds,
                 const std::string& oversubscribed = "no") {
  return absl::StrCat(setting, ",,", nodes, ",", ranks, ",1,", oversubscribed,
                      ",", speed, ",1,2,", seconds, "\n");
}

std::string OneNode() {
  return absl::StrCat(
      kTitles, Line("a", 1, 1, "100", "10"), Line("a", 1, 2, "160", "6.25"),
      Line("a", 1, 4, "250", "4"), Line("a", 1, 8, "900", "1", "yes"));
}

std::string ErrorOf(const std::string& csv, const SweepFacts& facts) {
  return std::string(ParseSweepTable(csv, facts).status().message());
}

TEST(SweepTableTest, RanksOfOneNodeAreItsN) {
  const auto table = ParseSweepTable(OneNode(), {.batch_per_rank = 20});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_TRUE(table->ranks_stand_for_nodes);
  EXPECT_EQ(table->images, 1000);  // 10 s at 100 a second
  EXPECT_EQ(table->batch_per_rank, 20);
  EXPECT_THAT(table->nodes, ElementsAre(1, 2, 4));  // not the oversubscribed
  ASSERT_THAT(table->columns, SizeIs(1));
  EXPECT_EQ(table->columns[0].name, "a, 1 thread");
  EXPECT_THAT(table->columns[0].epoch_seconds, ElementsAre(10, 6.25, 4));
}

TEST(SweepTableTest, NodesAreItsNWhereThereAreSeveral) {
  std::string csv = kTitles;
  for (const char* setting : {"a", "\"b, \"\"c\"\"\""}) {
    for (const int nodes : {1, 2, 4, 8}) {
      if (setting[0] == 'a' && nodes == 2) continue;
      absl::StrAppend(
          &csv, Line(setting, nodes, 4 * nodes, absl::StrCat(100 * nodes), ""));
    }
  }
  const auto table =
      ParseSweepTable(csv, {.items_per_epoch = 800, .world_batch = 64});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_FALSE(table->ranks_stand_for_nodes);
  EXPECT_THAT(table->nodes, ElementsAre(1, 4, 8));  // that both have
  ASSERT_THAT(table->columns, SizeIs(2));
  EXPECT_EQ(table->columns[1].name, "b, \"c\", 1 thread, 4 ranks per node");
  EXPECT_EQ(table->columns[1].ranks_per_node, 4);
  EXPECT_THAT(table->columns[1].epoch_seconds, ElementsAre(8, 2, 1));
  EXPECT_EQ(table->BatchOfRank(16), 4);
  EXPECT_EQ(table->BatchOfRank(128), 1);
}

TEST(SweepTableTest, WhatIsMissingIsNamed) {
  const SweepFacts facts = {.batch_per_rank = 20};
  EXPECT_THAT(ErrorOf("nodes,ranks\n1,1\n", facts),
              AllOf(HasSubstr("lacks the columns setting, mapping, threads"),
                    HasSubstr("scaling_sweep report")));
  EXPECT_THAT(ErrorOf(OneNode(), {}), HasSubstr("--batch-per-rank"));
  EXPECT_THAT(ErrorOf(absl::StrCat(kTitles, Line("a", 1, 1, "100", ""),
                                   Line("a", 1, 2, "160", ""),
                                   Line("a", 1, 4, "250", "")),
                      facts),
              HasSubstr("--items-per-epoch"));
  EXPECT_THAT(ErrorOf(absl::StrCat(kTitles, Line("a", 1, 1, "100", "1"),
                                   Line("a", 1, 2, "", "")),
                      facts),
              HasSubstr("fewer than 3"));
  EXPECT_THAT(
      ErrorOf(absl::StrCat(kTitles, ",,1,1,4,no,100,1,2,1\n",
                           ",,1,2,2,no,160,1,2,1\n", ",,1,4,1,no,250,1,2,1\n"),
              facts),
      HasSubstr("scaling_sweep run --threads 1"));
  EXPECT_THAT(ErrorOf(absl::StrCat(kTitles, "a,b\n"), facts),
              HasSubstr("line 2 has 2 cells"));
  EXPECT_THAT(ReadSweepTable("/nonexistent", facts).status().message(),
              HasSubstr("/nonexistent/table.csv"));
}

TEST(EpochTableTest, AllKeysThatAreMissingAreNamed) {
  const auto message = [](const std::string& json) {
    return std::string(ParseEpochTable(json).status().message());
  };
  EXPECT_THAT(message(R"({"source": "s", "images": 1, "nodes": [1]})"),
              HasSubstr("the table lacks batch_per_rank, cores_per_node, "
                        "columns; it must have source, images"));
  EXPECT_THAT(message(R"({"source": "s", "images": 1, "batch_per_rank": 1,
                  "cores_per_node": 1, "nodes": [1], "columns": [{}]})"),
              HasSubstr("column 1 lacks name, ranks_per_node, epoch_seconds"));
  EXPECT_EQ(message(R"({"source": "s", "images": 1, "batch_per_rank": 1,
                  "cores_per_node": 1, "nodes": [1], "columns": [
                  {"name": "c", "ranks_per_node": 1, "epoch_seconds": [null]}]})"),
            "column 1: epoch_seconds must be numbers, but is [null]");
}

TEST(EpochPagesTest, AFitIsDrawnByItsPoints) {
  FitReport report;
  report.table = *ParseSweepTable(OneNode(), {.batch_per_rank = 20});
  report.options = Options({1, 2});
  report.fits = {Fitted(report.table, report.options)};
  const std::string page = FitPage(report);
  for (const char* part : {"a, 1 thread", ">measured</text>", ">model</text>",
                           ">s per epoch</text>", ">ranks</text>",
                           "<th>image-ms</th>", "<td>1, 2</td>"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
}

}  // namespace
}  // namespace hvdlite::scale_sim
