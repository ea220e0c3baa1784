#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/golden.h"
#include "tools/scaling_sweep/report/scaling_report.h"
#include "tools/scaling_sweep/report/scaling_table.h"
#include "tools/scaling_sweep/report/scaling_text.h"
#include "tools/scaling_sweep/run/spec.h"

namespace hvdlite::scaling_sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

// Invented results of a sweep.
class MadeUpResults {
 public:
  MadeUpResults(const std::string& scaling, const std::string& more) {
    const absl::StatusOr<Spec> spec = ParseSpec(
        absl::StrCat("name: 't' command: ['p', '{report}'] repeats: 3 "
                     "items_per_epoch: 1000 scaling: ",
                     scaling, " ", more),
        "s");
    EXPECT_TRUE(spec.ok()) << spec.status();
    results_.spec = *spec;
  }

  // The next run of the configuration `index`; 0: failed.
  Sample& Add(size_t index, double speed) {
    const Configuration configuration =
        Configurations(results_.spec)->at(index);
    Sample sample;
    sample.configuration = Key(configuration);
    sample.repeat = repeats_[index]++;
    sample.ranks = configuration.ranks();
    sample.command = {"run", "a<b"};
    if (speed > 0) {
      sample.items_per_second = speed;
    } else {
      sample.failure = "ended with exit code 1";
      sample.log = "runs/x/output.log";
    }
    results_.samples.push_back(sample);
    return results_.samples.back();
  }

  ScalingTable Table() const {
    return MakeTable(results_,
                     [](const std::string& file) {
                       std::optional<timeline::TimeShares> shares;
                       if (file == "half" || file == "none") shares.emplace();
                       if (file == "half") shares->negotiating = 0.5;
                       if (file == "half") shares->exposed = 0.25;
                       return shares;
                     })
        .value();
  }

 private:
  Results results_;
  std::map<size_t, int> repeats_;
};

// ---- The reference of each row.

struct MadeUpRun {
  size_t row;
  double speed;
  int threads = 0;  // per rank
  bool oversubscribed = false;
};

struct ScalingCase {
  const char* name;
  const char* scaling;
  const char* spec;
  std::vector<MadeUpRun> runs;
  Counted counted;
  std::vector<double> efficiencies;  // of the rows; 0: none
  size_t groups = 1;
};

void PrintTo(const ScalingCase& one, std::ostream* out) { *out << one.name; }

class ScalingCaseTest : public ::testing::TestWithParam<ScalingCase> {};

TEST_P(ScalingCaseTest, EveryRowHasTheExpectedEfficiency) {
  const ScalingCase& one = GetParam();
  MadeUpResults sweep(one.scaling, one.spec);
  for (const MadeUpRun& run : one.runs) {
    Sample& sample = sweep.Add(run.row, run.speed);
    sample.threads_used = run.threads;
    sample.oversubscribed = run.oversubscribed;
  }
  const ScalingTable table = sweep.Table();
  EXPECT_EQ(table.counted, one.counted);
  EXPECT_THAT(table.Groups(), SizeIs(one.groups));
  ASSERT_EQ(table.rows.size(), one.efficiencies.size());
  for (size_t i = 0; i < table.rows.size(); ++i) {
    EXPECT_DOUBLE_EQ(table.rows[i].efficiency.value_or(0), one.efficiencies[i])
        << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Scaling, ScalingCaseTest,
    ::testing::Values(
        // 10 s / (2 * 6.25 s)
        ScalingCase{"StrongIsAgainstTheSmallestNumberOfRanks",
                    "STRONG",
                    "ranks: [2, 1, 4]",
                    {{1, 100}, {0, 180}, {0, 150}, {0, 160}, {2, 200}},
                    Counted::kRanks,
                    {0.8, 1, 0.5}},
        // A step of 100 items: 1 s; of 200: 1.25 s.
        ScalingCase{"WeakComparesTimesOfOneStep",
                    "WEAK",
                    "ranks: [1, 2]",
                    {{0, 100}, {1, 160}},
                    Counted::kRanks,
                    {1, 0.8}},
        // Other ranks per node are another series, which has no smaller N.
        ScalingCase{"NCountsNodesWhereThereAreSeveral",
                    "STRONG",
                    "world { nodes: 1 ranks_per_node: 4 } world { nodes: 2 "
                    "ranks_per_node: 4 } world { nodes: 2 ranks_per_node: 1 } "
                    "host: ['a', 'b']",
                    {{0, 100}, {1, 150}, {2, 150}},
                    Counted::kNodes,
                    {1, 0.75, 1},
                    2},
        ScalingCase{"SettingsScaleApart",
                    "STRONG",
                    "ranks: [1, 2] setting { name: 'a' } setting { name: 'b' }",
                    {{0, 100}, {1, 150}, {2, 10}, {3, 20}},
                    Counted::kRanks,
                    {1, 0.75, 1, 1},
                    2},
        // The second has as many cores as the first and is faster, so it is the
        // reference. The third: 120 / (6/4 * 125).
        ScalingCase{"WhereRanksHaveDifferentThreadsNCountsCores",
                    "STRONG",
                    "ranks: [1, 2, 3]",
                    {{0, 100, 4}, {1, 125, 2}, {2, 120, 2}},
                    Counted::kCores,
                    {0.8, 1, 0.64}},
        ScalingCase{"RanksWithTheSameThreadsAreCounted",
                    "STRONG",
                    "ranks: [1, 2]",
                    {{0, 100, 4}, {1, 150, 4}},
                    Counted::kRanks,
                    {1, 0.75}},
        // A step with one mini-batch; with two it takes 1/0.9 of the time.
        ScalingCase{"WeakCountsRanksWhateverTheirThreads",
                    "WEAK",
                    "ranks: [1, 2]",
                    {{0, 100, 2}, {1, 180, 1}},
                    Counted::kRanks,
                    {1, 0.9}},
        // Resumed on another machine, which does not change what N counts.
        ScalingCase{"ARowOfSeveralThreadNumbersHasNone",
                    "STRONG",
                    "ranks: [1, 2, 4]",
                    {{0, 100, 4}, {1, 150, 2}, {1, 150, 8}, {2, 300, 4}},
                    Counted::kRanks,
                    {1, 0, 0.75}},
        ScalingCase{"AFailedRunSaysNothingAboutThreads",
                    "STRONG",
                    "ranks: [1, 2]",
                    {{0, 100, 4}, {1, 0, 1, true}, {1, 150, 4}},
                    Counted::kRanks,
                    {1, 0.75}},
        ScalingCase{"ARowThatFailedIsWhatItsRunsWere",
                    "STRONG",
                    "ranks: [1, 2]",
                    {{0, 100, 4}, {1, 0, 1, true}},
                    Counted::kRanks,
                    {1, 0}},
        ScalingCase{"OversubscribedRowsAreMarkedAndNeverScaling",
                    "STRONG",
                    "ranks: [1, 2, 4]",
                    {{0, 100}, {1, 190}, {2, 400, 0, true}},
                    Counted::kRanks,
                    {1, 0.95, 0}},
        ScalingCase{"AnOversubscribedRowIsNoBase",
                    "STRONG",
                    "ranks: [1, 2] threads: 4",
                    {{0, 100, 0, true}, {1, 190, 0, true}},
                    Counted::kRanks,
                    {0, 0},
                    0},
        // This also holds for a reference and the rows compared with it.
        ScalingCase{
            "ASingleRunHasNoInterval",
            "STRONG",
            "ranks: [1, 2] setting { name: 'a' } setting { name: 'b' }",
            {{0, 100}, {0, 101}, {1, 160}, {2, 100}, {3, 160}, {3, 161}},
            Counted::kRanks,
            {1, 160 / 201., 1, 160.5 / 200},
            2}),
    [](const auto& test) { return std::string(test.param.name); });

// ---- The rest of a row.

TEST(ScalingTableTest, EfficiencyIntervalComesFromBothMedians) {
  MadeUpResults sweep("STRONG", "ranks: [1, 2]");
  for (int repeat = 0; repeat < 3; ++repeat) {
    sweep.Add(0, 100 + repeat);
    sweep.Add(1, 160 + repeat);
  }
  const ScalingTable table = sweep.Table();
  EXPECT_EQ(table.rows[0].interval->low, 100);
  EXPECT_EQ(table.rows[0].interval->high, 102);
  ASSERT_TRUE(table.rows[1].efficiency_interval.has_value());
  const support::Interval interval = *table.rows[1].efficiency_interval;
  // The interval is at least as wide as the range of the few runs.
  EXPECT_LT(interval.low, 160.0 / (2 * 102));
  EXPECT_GT(interval.low, 0.75);
  EXPECT_GT(interval.high, 162.0 / (2 * 100));
  EXPECT_LT(interval.high, 0.85);
  EXPECT_FALSE(table.rows[0].efficiency_interval.has_value());
  // The bars of the curves are those of the efficiency, not of the items/s.
  const auto charts = ScalingCharts(table);
  const support::Curve& speed_up = charts[1].second.curves[0];
  EXPECT_DOUBLE_EQ(speed_up.values[1], 161.0 / 101);
  EXPECT_DOUBLE_EQ(speed_up.low[1], 2 * interval.low);
  const support::Curve& curve = charts[2].second.curves[0];
  EXPECT_TRUE(std::isnan(curve.low[0]));
  EXPECT_DOUBLE_EQ(curve.low[1], 100 * interval.low);
  EXPECT_DOUBLE_EQ(curve.high[1], 100 * interval.high);
}

TEST(ScalingTableTest, FailuresAreCounted) {
  MadeUpResults sweep("STRONG", "ranks: [1, 2]");
  sweep.Add(0, 100);
  sweep.Add(0, 0);
  const ScalingTable table = sweep.Table();
  EXPECT_EQ(table.rows[0].failures, 1);
  EXPECT_EQ(table.rows[0].items_per_second, 100);
  EXPECT_FALSE(table.rows[1].items_per_second.has_value());
}

TEST(ScalingTableTest, SharesAreMeansOverTraces) {
  MadeUpResults sweep("STRONG", "ranks: 1");
  for (const char* trace : {"half", "none", "unreadable"}) {
    sweep.Add(0, 100).trace = trace;
  }
  const ScalingTable table = sweep.Table();
  ASSERT_TRUE(table.rows[0].shares.has_value());
  EXPECT_DOUBLE_EQ(table.rows[0].shares->negotiating, 0.25);
  EXPECT_DOUBLE_EQ(*table.rows[0].shares->exposed, 0.25);
}

TEST(ScalingTableTest, TextAndCsvShowAllKindsOfRows) {
  MadeUpResults cores("STRONG", "ranks: [1, 2, 3, 4, 5]");
  for (int repeat = 0; repeat < 3; ++repeat) {
    Sample& sample = cores.Add(0, 100 + repeat);
    sample.threads_used = 4;
    sample.host = "a";
    sample.trace = "half";
  }
  cores.Add(1, 125).threads_used = 2;
  for (const int threads : {2, 8}) cores.Add(2, 150).threads_used = threads;
  cores.Add(3, 190).oversubscribed = true;
  cores.Add(4, 200).threads_used = 2;
  for (int repeat = 0; repeat < 2; ++repeat) cores.Add(4, 0).cores = 1;
  testing::ExpectGolden(TableText(cores.Table()) + ScalingCsv(cores.Table()));

  MadeUpResults nodes(
      "STRONG",
      "items: 'images' world { nodes: 1 ranks_per_node: 1 } world { "
      "nodes: 2 ranks_per_node: 1 } host: ['a', 'b'] mapping: 'core' "
      "setting { name: 'a' } setting { name: 'b' }");
  for (const size_t row : {0, 1, 2}) nodes.Add(row, 100 + 50. * row);
  testing::ExpectGolden(TableText(nodes.Table()));

  MadeUpResults weak("WEAK", "ranks: [1, 2]");
  for (const size_t row : {0, 1}) weak.Add(row, 100);
  testing::ExpectGolden(TableText(weak.Table()) + ScalingCsv(weak.Table()));
}

TEST(ScalingTableTest, MachinesComeFromTheReports) {
  MadeUpResults sweep("STRONG", "ranks: [1, 2]");
  const std::map<std::string, std::string> machine = {
      {"memory", "8 GiB"}, {"processor", "Xeon"}, {"LibTorch", "2.6"}};
  for (const size_t row : {0, 1}) {
    Sample& sample = sweep.Add(row, 100);
    sample.machine = machine;
    sample.machine["other programs"] =
        row == 0 ? "0.40 of 2 CPUs: busy" : "0.01 of 2 CPUs: quiet";
  }
  EXPECT_THAT(MachinesOf(sweep.Table()),
              ElementsAre(ElementsAre(
                  Pair("processor", "Xeon"), Pair("memory", "8 GiB"),
                  Pair("LibTorch", "2.6"), Pair("runs", "2"),
                  Pair("other programs", "busy in 1 of 2 runs"))));
}

// ---- Charts and the page.

TEST(ScalingChartTest, CurvesHaveAnIdealLine) {
  MadeUpResults sweep("STRONG", "ranks: [1, 2, 4]");
  sweep.Add(0, 100);
  sweep.Add(1, 160);
  sweep.Add(2, 400).oversubscribed = true;
  const auto charts = ScalingCharts(sweep.Table());
  ASSERT_THAT(charts, SizeIs(3));
  EXPECT_EQ(charts[1].first, "speed_up.svg");
  const support::Chart& speed_up = charts[1].second;
  ASSERT_THAT(speed_up.curves, SizeIs(2));
  EXPECT_THAT(speed_up.curves[0].x, ElementsAre(1, 2));
  EXPECT_TRUE(speed_up.curves[1].dashed);
  EXPECT_THAT(speed_up.curves[1].values, ElementsAre(1, 2));
  EXPECT_TRUE(speed_up.log_x);
  MadeUpResults one("STRONG", "ranks: 1");
  one.Add(0, 100);
  EXPECT_THAT(ScalingCharts(one.Table()), IsEmpty());
}

TEST(ScalingChartTest, SpeedsAreDrawnOverRanksIfNCountsCores) {
  MadeUpResults sweep("STRONG", "ranks: [1, 2, 3] items: 'images'");
  sweep.Add(0, 100).threads_used = 4;
  sweep.Add(1, 125).threads_used = 2;
  sweep.Add(2, 120).threads_used = 2;
  const auto charts = ScalingCharts(sweep.Table());
  ASSERT_THAT(charts, SizeIs(3));
  const support::Chart& speed = charts[0].second;
  EXPECT_EQ(speed.x_label, "ranks");
  EXPECT_THAT(speed.y_label, HasSubstr("images/s"));
  ASSERT_THAT(speed.curves, SizeIs(1));  // no ideal: threads shrink
  EXPECT_THAT(speed.curves[0].x, ElementsAre(1, 2, 3));
  const support::Chart& efficiency = charts[2].second;
  EXPECT_EQ(efficiency.x_label, "cores (ranks x threads)");
  EXPECT_THAT(efficiency.curves[0].x, ElementsAre(4, 6));
  EXPECT_THAT(efficiency.curves[0].values, ElementsAre(100, 64));
}

TEST(ScalingPageTest, PageIsCompleteAndNeedsNoOtherFiles) {
  MadeUpResults sweep(
      "STRONG",
      "ranks: [1, 2, 4] environment { name: 'A' value: '<b>' } setting { "
      "name: 'x' argument: '--bf16' launcher_flag: '--map' }");
  sweep.Add(0, 100).trace = "runs/a/trace.json";
  sweep.Add(1, 150);
  Sample& sample = sweep.Add(2, 160);
  sample.machine = {{"memory", "8 GiB"}, {"other programs", "0.40: busy"}};
  sample.oversubscribed = true;
  const std::string page = HtmlReport(sweep.Table());
  for (const char* part :
       {"<th>variables</th><td>A=&lt;b&gt;</td>",
        "<th>setting x</th><td>--map --bf16</td>", "<td>8 GiB</td>",
        "<td>0.40: busy</td>", "<tr class=\"oversubscribed\">",
        "<a href=\"runs/a/trace.json\">trace</a>", "run 'a&lt;b'", "<svg",
        "1 row is oversubscribed"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
  EXPECT_THAT(page, Not(HasSubstr("http")));
}

}  // namespace
}  // namespace hvdlite::scaling_sweep
