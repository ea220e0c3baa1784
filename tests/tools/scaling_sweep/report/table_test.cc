#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>

#include "absl/strings/str_cat.h"
#include "tests/testing/fakes/sweep_folder.h"
#include "tools/scaling_sweep/report/efficiency.h"
#include "tools/scaling_sweep/report/scaling_report.h"
#include "tools/scaling_sweep/report/scaling_table.h"
#include "tools/scaling_sweep/report/scaling_text.h"
#include "tools/scaling_sweep/run/spec.h"

namespace hvdlite::scaling_sweep {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class ScalingTableTest : public ::testing::Test {
 protected:
  void Use(const std::string& scaling, const std::string& more) {
    const absl::StatusOr<Spec> spec = ParseSpec(
        absl::StrCat("name: 't' command: ['p', '{report}'] repeats: 3 "
                     "items_per_epoch: 1000 scaling: ",
                     scaling, " ", more),
        "s");
    ASSERT_TRUE(spec.ok()) << spec.status();
    results_.spec = *spec;
    results_.samples.clear();
  }
  // Of the configuration `index`; 0: failed.
  Sample& Add(size_t index, int repeat, double speed,
              bool oversubscribed = false, const std::string& trace = "") {
    const auto configurations = Configurations(results_.spec);
    const Configuration& configuration = configurations->at(index);
    Sample sample;
    sample.configuration = Key(configuration);
    sample.repeat = repeat;
    sample.ranks = configuration.ranks();
    sample.oversubscribed = oversubscribed;
    sample.trace = trace;
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

  Results results_;
};

TEST_F(ScalingTableTest, StrongScalingIsAgainstTheSmallestNumberOfRanks) {
  Use("STRONG", "ranks: [2, 1, 4]");
  Add(1, 0, 100);
  Add(0, 0, 180);
  Add(0, 1, 150);
  Add(0, 2, 160);
  Add(2, 0, 200);
  const ScalingTable table = Table();
  const Row& two = table.rows[0];
  EXPECT_EQ(two.items_per_second, 160);
  EXPECT_EQ(two.epoch_seconds, 6.25);
  EXPECT_DOUBLE_EQ(*two.speed_up, 1.6);
  EXPECT_DOUBLE_EQ(*two.efficiency, 0.8);  // 10 s / (2 * 6.25 s)
  EXPECT_EQ(two.base_n, 1);
  ASSERT_TRUE(two.interval.has_value());
  EXPECT_EQ(two.interval->low, 150);
  EXPECT_EQ(two.interval->high, 180);
  EXPECT_DOUBLE_EQ(*table.rows[2].efficiency, 0.5);
  EXPECT_FALSE(table.rows[1].interval.has_value());  // of one sample
  EXPECT_THAT(table.Groups(), ElementsAre(ElementsAre(1, 0, 2)));
  EXPECT_THAT(Notes(table),
              Contains(HasSubstr("(strong: T1/(N*TN), N = ranks)")));
}

TEST_F(ScalingTableTest, AnEfficiencyHasTheIntervalOfBothMedians) {
  Use("STRONG", "ranks: [1, 2]");
  for (int repeat = 0; repeat < 3; ++repeat) {
    Add(0, repeat, 100 + repeat);
    Add(1, repeat, 160 + repeat);
  }
  const ScalingTable table = Table();
  ASSERT_TRUE(table.rows[1].efficiency_interval.has_value());
  const support::Interval interval = *table.rows[1].efficiency_interval;
  // At least as far apart as the runs, of which there are few.
  EXPECT_LT(interval.low, 160.0 / (2 * 102));
  EXPECT_GT(interval.low, 0.75);
  EXPECT_GT(interval.high, 162.0 / (2 * 100));
  EXPECT_LT(interval.high, 0.85);
  EXPECT_FALSE(table.rows[0].efficiency_interval.has_value());
  EXPECT_THAT(CellsOf(table).titles, Contains("its interval"));
  EXPECT_THAT(CellsOf(table).rows[1], Contains("77.5..82.0 %"));
  EXPECT_THAT(ScalingCsv(table), HasSubstr("efficiency_low,efficiency_high"));
  EXPECT_THAT(Notes(table), Contains(HasSubstr("The interval of an eff")));
  // The curve's bars are those of the efficiency, not of its items/s alone.
  const support::Curve curve = ScalingCharts(table)[2].second.curves[0];
  EXPECT_TRUE(std::isnan(curve.low[0]));
  EXPECT_DOUBLE_EQ(curve.low[1], 100 * interval.low);
  EXPECT_DOUBLE_EQ(curve.high[1], 100 * interval.high);
}

TEST_F(ScalingTableTest, ASingleRunIsSaidToHaveNoInterval) {
  Use("STRONG", "ranks: [1, 2, 4]");
  Add(0, 0, 100);
  Add(0, 1, 101);
  Add(1, 0, 160);
  Add(2, 0, 200);
  Add(2, 1, 201);
  EXPECT_THAT(CellsOf(Table()).rows[1], Contains("one run"));
  EXPECT_THAT(Notes(Table()), Contains(HasSubstr("1 row has a single run")));
  // Of a reference, too, for what is compared with it.
  Use("STRONG", "ranks: [1, 2]");
  Add(0, 0, 100);
  Add(1, 0, 160);
  Add(1, 1, 161);
  EXPECT_FALSE(Table().rows[1].efficiency_interval.has_value());
  EXPECT_THAT(Notes(Table()), Contains(HasSubstr("1 row has a single run")));
}

TEST_F(ScalingTableTest, WeakScalingIsLabelledAndComparesTimesOfOneStep) {
  Use("WEAK", "ranks: [1, 2]");
  Add(0, 0, 100);  // a step of 100 items: 1 s
  Add(1, 0, 160);  // of 200 items: 1.25 s
  const ScalingTable table = Table();
  EXPECT_DOUBLE_EQ(*table.rows[1].efficiency, 0.8);
  EXPECT_THAT(Notes(table), Contains(HasSubstr("(weak: T1/TN, N = ranks)")));
  EXPECT_THAT(ScalingCsv(table), HasSubstr("weak: T1/TN"));
}

TEST_F(ScalingTableTest, NCountsNodesWhereThereAreSeveral) {
  Use("STRONG",
      "world { nodes: 1 ranks_per_node: 4 } world { nodes: 2 ranks_per_node: "
      "4 } world { nodes: 2 ranks_per_node: 1 } host: ['a', 'b']");
  Add(0, 0, 100);
  Add(1, 0, 150);
  Add(2, 0, 150);
  const ScalingTable table = Table();
  EXPECT_DOUBLE_EQ(*table.rows[1].efficiency, 0.75);
  // Other ranks per node are another series, which has no smaller N.
  EXPECT_EQ(table.rows[2].base_n, 2);
  EXPECT_DOUBLE_EQ(*table.rows[2].efficiency, 1);
  EXPECT_THAT(CellsOf(table).rows[2], Contains("100.0 % *"));
  EXPECT_THAT(Notes(table),
              Contains(HasSubstr("1 rank per node: 2 ranks, N = 2")));
  EXPECT_THAT(table.EfficiencyTitle(), HasSubstr("N = nodes"));
}

TEST_F(ScalingTableTest, SettingsMappingsAndThreadsScaleApart) {
  Use("STRONG", "ranks: [1, 2] setting { name: 'a' } setting { name: 'b' }");
  Add(0, 0, 100);
  Add(1, 0, 150);
  Add(2, 0, 10);
  Add(3, 0, 20);
  const ScalingTable table = Table();
  EXPECT_DOUBLE_EQ(*table.rows[1].efficiency, 0.75);
  EXPECT_DOUBLE_EQ(*table.rows[3].efficiency, 1);
  EXPECT_THAT(table.Groups(), SizeIs(2));
  // The column "x first" is against the first row of all.
  EXPECT_THAT(CellsOf(table).rows[3], Contains("0.2"));
}

TEST_F(ScalingTableTest, WhereRanksHaveDifferentThreadsNCountsCores) {
  Use("STRONG", "ranks: [1, 2, 3]");
  Add(0, 0, 100).threads_used = 4;
  Add(1, 0, 125).threads_used = 2;
  Add(2, 0, 120).threads_used = 2;
  const ScalingTable table = Table();
  EXPECT_EQ(table.EfficiencyTitle(),
            "strong: T1/(N*TN), N = cores (ranks x threads)");
  EXPECT_EQ(table.rows[0].n, 4);
  EXPECT_EQ(table.rows[2].n, 6);
  // The second has as many cores as the first, and is faster: the reference.
  EXPECT_TRUE(table.rows[1].is_reference);
  EXPECT_DOUBLE_EQ(*table.rows[1].efficiency, 1);
  EXPECT_DOUBLE_EQ(*table.rows[0].efficiency, 0.8);
  EXPECT_DOUBLE_EQ(*table.rows[2].efficiency, 0.64);  // 120 / (6/4 * 125)
  const TextCells cells = CellsOf(table);
  EXPECT_THAT(cells.titles,
              ElementsAre("ranks", "threads", "cores", "items/s", "epoch s",
                          "speed-up", "efficiency", "runs"));
  EXPECT_EQ(cells.keys, 3u);
  EXPECT_THAT(cells.rows[0],
              ElementsAre("1", "4", "4", "100", "10", "0.8", "80.0 %", "1"));
  EXPECT_THAT(cells.rows[1], Contains("100.0 % *"));
  EXPECT_THAT(Notes(table), Contains(HasSubstr("N counts cores")));
  EXPECT_THAT(Notes(table),
              Contains(HasSubstr("t: 2 ranks x 2 threads, N = 4")));
  EXPECT_THAT(ScalingCsv(table), HasSubstr(",cores (ranks x threads),6,4,"));
}

TEST_F(ScalingTableTest, WhereNCountsCoresSpeedsStandOverRanks) {
  Use("STRONG", "ranks: [1, 2, 3] items: 'images'");
  Add(0, 0, 100).threads_used = 4;
  Add(1, 0, 125).threads_used = 2;
  Add(2, 0, 120).threads_used = 2;
  const auto charts = ScalingCharts(Table());
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

TEST_F(ScalingTableTest, RanksWithTheSameThreadsAreCounted) {
  Use("STRONG", "ranks: [1, 2]");
  Add(0, 0, 100).threads_used = 4;
  Add(1, 0, 150).threads_used = 4;
  const ScalingTable table = Table();
  EXPECT_DOUBLE_EQ(*table.rows[1].efficiency, 0.75);
  EXPECT_THAT(table.EfficiencyTitle(), HasSubstr("N = ranks"));
  EXPECT_THAT(ScalingCsv(table), HasSubstr(",2,4,no,150,"));
}

TEST_F(ScalingTableTest, WeakScalingCountsRanksWhateverTheirThreads) {
  Use("WEAK", "ranks: [1, 2]");
  Add(0, 0, 100).threads_used = 2;  // a step of one batch
  Add(1, 0, 180).threads_used = 1;  // of two, in 1/0.9 of the time
  const ScalingTable table = Table();
  EXPECT_DOUBLE_EQ(*table.rows[1].efficiency, 0.9);
  EXPECT_EQ(table.rows[1].n, 2);
  EXPECT_EQ(table.EfficiencyTitle(), "weak: T1/TN, N = ranks");
}

TEST_F(ScalingTableTest, ARowOfSeveralThreadNumbersHasNoEfficiency) {
  Use("STRONG", "ranks: [1, 2, 4]");
  Add(0, 0, 100).threads_used = 4;
  Add(1, 0, 150).threads_used = 2;
  Add(1, 1, 150).threads_used = 8;  // resumed on another machine
  Add(2, 0, 300).threads_used = 4;
  const ScalingTable table = Table();
  EXPECT_FALSE(table.rows[1].efficiency.has_value());
  EXPECT_THAT(CellsOf(table).rows[1], Contains("2 or 8"));
  // Nor does it decide what N is.
  EXPECT_DOUBLE_EQ(*table.rows[2].efficiency, 0.75);
  EXPECT_THAT(table.EfficiencyTitle(), HasSubstr("N = ranks"));
}

TEST_F(ScalingTableTest, AFailedRunSaysNothingAboutThreads) {
  Use("STRONG", "ranks: [1, 2]");
  Add(0, 0, 100).threads_used = 4;
  Add(1, 0, 0, /*oversubscribed=*/true).threads_used = 1;
  const Row failed = Table().rows[1];
  EXPECT_TRUE(failed.oversubscribed);
  EXPECT_THAT(failed.threads, ElementsAre(1));
  Add(1, 1, 150).threads_used = 4;
  const ScalingTable table = Table();
  EXPECT_FALSE(table.rows[1].oversubscribed);
  EXPECT_THAT(table.rows[1].threads, ElementsAre(4));
  EXPECT_DOUBLE_EQ(*table.rows[1].efficiency, 0.75);
  EXPECT_THAT(table.EfficiencyTitle(), HasSubstr("N = ranks"));
}

TEST_F(ScalingTableTest, RunsOfSeveralMachinesAreNoted) {
  Use("STRONG", "ranks: [1, 2]");
  Add(0, 0, 100).host = "a";
  Add(1, 0, 150).host = "a";
  EXPECT_THAT(Notes(Table()), Not(Contains(HasSubstr("machine"))));
  Add(1, 1, 150).host = "b";
  results_.samples.back().cores = 1;
  const std::string machines =
      "not made on one machine: a (0 cores): 2 runs; b (1 core): 1 run";
  EXPECT_THAT(Notes(Table()), Contains(HasSubstr(machines)));
  EXPECT_THAT(HtmlReport(Table()), HasSubstr(machines));
}

TEST_F(ScalingTableTest, MachinesAreThoseOfTheReports) {
  Use("STRONG", "ranks: [1, 2]");
  Add(0, 0, 100).machine = {{"memory", "8 GiB"},
                            {"processor", "Xeon"},
                            {"LibTorch", "2.6"},
                            {"other programs", "0.40 of 2 CPUs: busy"}};
  const std::map<std::string, std::string> same =
      results_.samples.back().machine;
  Add(1, 0, 150).machine = same;
  results_.samples.back().machine["other programs"] = "0.01 of 2 CPUs: quiet";
  const auto machines = MachinesOf(Table());
  ASSERT_THAT(machines, SizeIs(1));
  EXPECT_THAT(machines[0], ElementsAre(::testing::Pair("processor", "Xeon"),
                                       ::testing::Pair("memory", "8 GiB"),
                                       ::testing::Pair("LibTorch", "2.6"),
                                       ::testing::Pair("runs", "2"),
                                       ::testing::Pair("other programs",
                                                       "busy in 1 of 2 runs")));
  const std::string page = HtmlReport(Table());
  EXPECT_THAT(page, HasSubstr("<td>8 GiB</td>"));
  EXPECT_THAT(page, HasSubstr("<td>0.40 of 2 CPUs: busy</td>"));
}

TEST_F(ScalingTableTest, ThePageTellsTheSettings) {
  Use("STRONG",
      "ranks: 1 environment { name: 'A' value: '<b>' } setting { name: 'x' "
      "argument: '--bf16' launcher_flag: '--map' }");
  Add(0, 0, 100).host = "h";
  const std::string page = HtmlReport(Table());
  EXPECT_THAT(page, HasSubstr("<th>variables</th><td>A=&lt;b&gt;</td>"));
  EXPECT_THAT(page, HasSubstr("<th>setting x</th><td>--map --bf16</td>"));
  EXPECT_THAT(page, HasSubstr("<th>host</th><td>h</td>"));
}

TEST_F(ScalingTableTest, OversubscribedRowsAreMarkedAndNeverScaling) {
  Use("STRONG", "ranks: [1, 2, 4]");
  Add(0, 0, 100);
  Add(1, 0, 190);
  Add(2, 0, 400, /*oversubscribed=*/true);
  const ScalingTable table = Table();
  const Row& row = table.rows[2];
  EXPECT_EQ(row.items_per_second, 400);
  EXPECT_FALSE(row.speed_up.has_value());
  EXPECT_FALSE(row.efficiency.has_value());
  EXPECT_THAT(CellsOf(table).rows[2], Contains("oversubscribed"));
  EXPECT_THAT(Notes(table), Contains(HasSubstr("1 row is oversub")));
  EXPECT_THAT(table.Groups(), ElementsAre(ElementsAre(0, 1)));
  EXPECT_THAT(ScalingCharts(table).front().second.curves.front().x,
              ElementsAre(1, 2));
  EXPECT_THAT(HtmlReport(table), HasSubstr("<tr class=\"oversubscribed\">"));
  EXPECT_THAT(ScalingCsv(table), HasSubstr(",4,,yes,400,"));
}

TEST_F(ScalingTableTest, AnOversubscribedRowIsNoBase) {
  Use("STRONG", "ranks: [1, 2] threads: 4");
  Add(0, 0, 100, /*oversubscribed=*/true);
  Add(1, 0, 190, /*oversubscribed=*/true);
  EXPECT_THAT(Table().Groups(), IsEmpty());
  EXPECT_THAT(ScalingCharts(Table()), IsEmpty());
}

TEST_F(ScalingTableTest, FailuresAreCountedAndTold) {
  Use("STRONG", "ranks: [1, 2]");
  Add(0, 0, 100);
  Add(0, 1, 0);
  const ScalingTable table = Table();
  EXPECT_EQ(table.rows[0].failures, 1);
  EXPECT_EQ(table.rows[0].items_per_second, 100);
  EXPECT_FALSE(table.rows[1].items_per_second.has_value());
  EXPECT_THAT(Notes(table),
              Contains("Failed: 1 rank, repeat 2: ended with exit code 1 "
                       "(runs/x/output.log)"));
  Add(0, 2, 0);
  EXPECT_THAT(Notes(Table()),
              Contains("Failed: 1 rank, repeats 2, 3: ended with exit code 1 "
                       "(runs/x/output.log)"));
}

TEST_F(ScalingTableTest, SharesAreMeansOverTraces) {
  Use("STRONG", "ranks: 1");
  Add(0, 0, 100, false, "half");
  Add(0, 1, 100, false, "none");
  Add(0, 2, 100, false, "unreadable");
  const ScalingTable table = Table();
  ASSERT_TRUE(table.rows[0].shares.has_value());
  EXPECT_DOUBLE_EQ(table.rows[0].shares->negotiating, 0.25);
  EXPECT_DOUBLE_EQ(*table.rows[0].shares->exposed, 0.25);
}

TEST_F(ScalingTableTest, ChartsHaveErrorBarsAndAnIdealLine) {
  Use("STRONG", "ranks: [1, 2]");
  for (int repeat = 0; repeat < 3; ++repeat) {
    Add(0, repeat, 100 + repeat);
    Add(1, repeat, 150 + 10 * repeat);
  }
  const ScalingTable table = Table();
  const auto charts = ScalingCharts(table);
  ASSERT_THAT(charts, SizeIs(3));
  EXPECT_EQ(charts[1].first, "speed_up.svg");
  const support::Chart& speed_up = charts[1].second;
  ASSERT_THAT(speed_up.curves, SizeIs(2));
  EXPECT_DOUBLE_EQ(speed_up.curves[0].values[1], 160.0 / 101);
  EXPECT_DOUBLE_EQ(speed_up.curves[0].low[1],
                   2 * table.rows[1].efficiency_interval->low);
  EXPECT_TRUE(speed_up.curves[1].dashed);
  EXPECT_THAT(speed_up.curves[1].values, ElementsAre(1, 2));
  EXPECT_TRUE(speed_up.log_x);
}

TEST_F(ScalingTableTest, ThePageLinksTheTracesAndTakesNothingFromElsewhere) {
  Use("STRONG", "ranks: [1, 2]");
  Add(0, 0, 100, false, "runs/a/trace.json");
  Add(1, 0, 150);
  const std::string page = HtmlReport(Table());
  EXPECT_THAT(page, HasSubstr("<a href=\"runs/a/trace.json\">trace</a>"));
  EXPECT_THAT(page, HasSubstr("run 'a&lt;b'"));
  EXPECT_THAT(page, HasSubstr("<svg"));
  EXPECT_THAT(page, Not(HasSubstr("http")));
}

TEST(EfficiencyTest, FollowsTheFormulas) {
  EXPECT_DOUBLE_EQ(StrongEfficiency(100, 4, 50), 0.5);
  EXPECT_DOUBLE_EQ(WeakEfficiency(1, 1.25), 0.8);
  // The smallest N of 2 instead of 1.
  EXPECT_DOUBLE_EQ(EfficiencyOfSpeeds(STRONG, 2, 100, 8, 200), 0.5);
  EXPECT_DOUBLE_EQ(EfficiencyOfSpeeds(WEAK, 2, 100, 8, 200), 0.5);
}

}  // namespace
}  // namespace hvdlite::scaling_sweep
