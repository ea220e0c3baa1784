#include "tools/doctor/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "tests/tools/doctor/checks/expect_findings.h"

namespace hvdlite::doctor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

Finding Of(Verdict verdict, const std::string& seen,
           std::vector<int> ranks = {}) {
  return {.check = "blas",
          .verdict = verdict,
          .seen = seen,
          .remedy = verdict == Verdict::kOk ? "" : "unset X",
          .ranks = std::move(ranks)};
}

TEST(ReportTest, EqualFindingsOfRanksBecomeOne) {
  const std::vector<Finding> merged =
      MergeFindings({{Of(Verdict::kOk, "fast")},
                     {Of(Verdict::kProblem, "slow")},
                     {Of(Verdict::kOk, "fast")}});
  ASSERT_THAT(merged, SizeIs(2));
  EXPECT_EQ(merged[0].seen, "fast");
  EXPECT_THAT(merged[0].ranks, ElementsAre(0, 2));
  EXPECT_THAT(merged[1].ranks, ElementsAre(1));
}

TEST(ReportTest, FindingsWithDifferentRemediesAreNotMerged) {
  Finding other = Of(Verdict::kWarning, "slow");
  other.remedy = "export X=1";
  EXPECT_THAT(MergeFindings({{Of(Verdict::kWarning, "slow")}, {other}}),
              SizeIs(2));
}

TEST(ReportTest, RankZeroReportsForOtherRanks) {
  const std::vector<Finding> merged =
      MergeFindings({{Of(Verdict::kProblem, "slow", {2, 3})}, {}, {}, {}});
  ASSERT_THAT(merged, SizeIs(1));
  EXPECT_THAT(merged[0].ranks, ElementsAre(2, 3));
}

TEST(ReportTest, ExitCodeIsThreeForWarningsAndProblems) {
  EXPECT_EQ(ExitCodeOf({}), 0);
  EXPECT_EQ(ExitCodeOf({Of(Verdict::kOk, ""), Of(Verdict::kNote, "")}), 0);
  EXPECT_EQ(ExitCodeOf({Of(Verdict::kWarning, ""), Of(Verdict::kOk, "")}), 3);
  EXPECT_EQ(ExitCodeOf({Of(Verdict::kProblem, "")}), 3);
}

TEST(ReportTest, RanksAreNamedWithTheirHostsIfThereAreSeveral) {
  EXPECT_EQ(DescribeRanks(std::vector<int>{0, 1}, {"a", "a"}), "all");
  EXPECT_EQ(DescribeRanks(std::vector<int>{1}, {"a", "a"}), "1");
  EXPECT_EQ(DescribeRanks(std::vector<int>{0, 1, 2, 4},
                          {"a", "a", "b", "b", "c", "c"}),
            "0-2,4 (a, b, c)");
}

TEST(ReportTest, TableHasOneLinePerFindingAndTheRemedyBelow) {
  const std::string table = FindingsTable(
      {Of(Verdict::kOk, "fast", {0}), Of(Verdict::kProblem, "slow", {1})},
      {"a", "b"});
  EXPECT_THAT(table, StartsWith("verdict  check  ranks  seen\n"
                                "ok       blas   0 (a)  fast\n"
                                "problem  blas   1 (b)  slow\n"));
  EXPECT_THAT(table, HasSubstr("fix: unset X\n"));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 4);
}

TEST(ReportTest, SeenIsWrappedAndTheRemedyIsNot) {
  const std::string many = "word" + std::string(60, 'x') + " ";
  Finding finding = Of(Verdict::kProblem, many + many + "end", {0});
  finding.remedy = many + many + "end";
  const std::string table = FindingsTable({finding}, {"a"});
  EXPECT_THAT(table, HasSubstr("\n" + std::string(23, ' ') + "word"));
  EXPECT_THAT(table, HasSubstr("fix: " + finding.remedy + "\n"));
}

TEST(ReportTest, RanksOfManyHostsDoNotWidenTheColumn) {
  std::vector<std::string> hosts;
  for (int i = 0; i < 12; ++i) hosts.push_back(absl::StrCat("host", i));
  const std::string table =
      FindingsTable({Of(Verdict::kOk, "fast", {0}),
                     Of(Verdict::kProblem, "slow", {0, 2, 4, 6, 8, 10})},
                    hosts);
  EXPECT_THAT(table, HasSubstr("ok       blas   0 (host0)  fast\n"));
  EXPECT_THAT(table, HasSubstr("host8, host10)\n    slow\n"));
}

TEST(ReportTest, JsonHasAllFields) {
  const nlohmann::json json = nlohmann::json::parse(FindingsJson(
      {Of(Verdict::kNote, "caf\xff", {0, 1}), Of(Verdict::kWarning, "x", {1})},
      {"a", "b"}));
  EXPECT_EQ(json["worst"], "warning");
  EXPECT_EQ(json["ranks"], 2);
  EXPECT_EQ(json["findings"][1]["verdict"], "warning");
  EXPECT_EQ(json["findings"][1]["remedy"], "unset X");
  EXPECT_EQ(json["findings"][1]["ranks"], nlohmann::json({1}));
  EXPECT_EQ(json["findings"][0]["hosts"], nlohmann::json({"a", "b"}));
}

}  // namespace
}  // namespace hvdlite::doctor
