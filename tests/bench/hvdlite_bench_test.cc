#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/hvdlite_bench/report.h"
#include "bench/hvdlite_bench/results.h"
#include "bench/hvdlite_bench/workloads.h"
#include "support/gradient_sizes.h"

namespace hvdlite::tools {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

Implementation WithTimes(const char* name, Role role,
                         std::vector<double> values) {
  Implementation implementation{name, role, {}, ""};
  for (const double value : values)
    implementation.samples.push_back({value, 0, {}});
  return implementation;
}

// The distance is near in rounds 0 and 3, far in round 1, and changes in round
// 2.
Results FourRounds() {
  Results results;
  results.mode = "sweep";
  results.ranks = 4;
  results.rounds = 4;
  results.machine = {{"processor", "Some CPU"}};
  results.notes = {"A note."};
  Case a_case;
  a_case.name = "4000";
  a_case.elements = {600, 400};
  a_case.before_ns = {100, 400, 100, 249};
  a_case.after_ns = {120, 500, 400, 249};
  a_case.implementations = {
      WithTimes("ours", Role::kHvdlite, {3, 40, 1, 8}),
      WithTimes("mpi_a", Role::kMpi, {2, 30, 1, 4}),
      WithTimes("mpi_b", Role::kMpi, {4, 20, 1, 2}),
      WithTimes("other", Role::kReference, {1, 1, 1, 1}),
      {"absent", Role::kMpi, {}, "not available"},
  };
  results.cases = {a_case};
  return results;
}

TEST(BusFactorTest, IsTwiceTheShareOfTheOtherRanks) {
  EXPECT_DOUBLE_EQ(AllreduceBusFactor(1), 0);
  EXPECT_DOUBLE_EQ(AllreduceBusFactor(2), 1);
  EXPECT_DOUBLE_EQ(AllreduceBusFactor(4), 1.5);
}

TEST(DistanceTest, FollowsBothProbes) {
  EXPECT_EQ(DistanceOf(120, 249), Distance::kNear);
  EXPECT_EQ(DistanceOf(250, 480), Distance::kFar);
  EXPECT_EQ(DistanceOf(120, 480), Distance::kMoved);
  EXPECT_EQ(DistanceOf(480, 120), Distance::kMoved);
  EXPECT_EQ(DistanceOf(kNone, 120), Distance::kUnknown);
}

TEST(ResultsTest, RatiosTakeTheBestMpiOfTheSameRound) {
  const Case a_case = FourRounds().cases[0];
  EXPECT_THAT(
      RatiosToBestMpi(a_case, a_case.implementations[0], Distance::kNear),
      ElementsAre(1.5, 4));
  EXPECT_THAT(
      RatiosToBestMpi(a_case, a_case.implementations[0], Distance::kFar),
      ElementsAre(2));
}

TEST(ResultsTest, NoRatiosWithoutMpi) {
  Case a_case = FourRounds().cases[0];
  a_case.implementations.resize(1);
  EXPECT_THAT(
      RatiosToBestMpi(a_case, a_case.implementations[0], Distance::kNear),
      IsEmpty());
}

TEST(ResultsTest, RoundsWithChangedDistanceAreDropped) {
  const Case a_case = FourRounds().cases[0];
  EXPECT_THAT(SamplesAt(a_case, a_case.implementations[0], Distance::kNear),
              ElementsAre(3, 8));
  EXPECT_THAT(SamplesAt(a_case, a_case.implementations[0], Distance::kFar),
              ElementsAre(40));
}

std::string Rows(const Results& results) {
  std::ostringstream out;
  PrintRows(results, out);
  return out.str();
}

std::string Details(const Results& results) {
  std::ostringstream out;
  PrintDetails(results, out);
  return out.str();
}

// The lines that are not comments.
std::vector<std::string> RowsOnly(const std::string& text) {
  std::vector<std::string> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != '#') rows.push_back(line);
  }
  return rows;
}

TEST(RowsTest, OneRowPerSizeBelowOneHeader) {
  Results results = FourRounds();
  results.row_implementation = "ours";
  results.cases.push_back(results.cases[0]);
  results.cases[1].name = "8000";
  results.cases[1].elements = {2000};
  const std::string text = Rows(results);
  EXPECT_THAT(text, HasSubstr("# bytes  hvdlite_us  best_mpi_us  ratio"));
  // 4000 bytes in 5.5 us; four ranks send 1.5 times as much. The best of MPI is
  // 2 us in both near rounds.
  EXPECT_THAT(RowsOnly(text),
              ElementsAre("   4000        5.50         2.00   2.750 [1.500, "
                          "4.000]        0.73        1.09  2 of 4 rounds",
                          "   8000        5.50         2.00   2.750 [1.500, "
                          "4.000]        1.45        2.18  2 of 4 rounds"));
}

TEST(RowsTest, NoRemarkIfAllRoundsAreNear) {
  Results results = FourRounds();
  results.cases[0].before_ns = results.cases[0].after_ns = {1, 1, 1, 1};
  EXPECT_THAT(Rows(results),
              AllOf(Not(HasSubstr("rounds dropped")),
                    Not(HasSubstr("cores far")), Not(HasSubstr("of 4"))));
}

TEST(RowsTest, UseTheMostCommonDistance) {
  Results results = FourRounds();
  results.cases[0].before_ns = {400, 400, 100, 249};
  results.cases[0].after_ns = {400, 400, 400, 249};
  const std::vector<std::string> rows = RowsOnly(Rows(results));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_THAT(rows[0], HasSubstr(" 21.50 "));  // median of 3 and 40
  EXPECT_THAT(rows[0], EndsWith("far, 2 of 4 rounds"));
}

TEST(RowsTest, ShowEveryCaseAndImplementationWithoutMpi) {
  Results results = FourRounds();
  results.mode = "submit";
  results.cases[0].name = "submit";
  results.cases[0].unit = "ns";
  results.cases[0].implementations = {
      WithTimes("a", Role::kHvdlite, {3, 1, 1, 4}),
      WithTimes("b", Role::kHvdlite, {7, 1, 1, 7})};
  EXPECT_THAT(
      RowsOnly(Rows(results)),
      ElementsAre("  submit  a                 3.50  3.00  4.00  ns    2 of 4 "
                  "rounds",
                  "  submit  b                 7.00  7.00  7.00  ns    2 of 4 "
                  "rounds"));
}

TEST(RowsTest, SingleBaselineNamesTheColumn) {
  Results results = FourRounds();
  results.mode = "checks";
  results.cases[0].implementations = {
      WithTimes("checks", Role::kHvdlite, {3, 1, 1, 3}),
      WithTimes("without", Role::kMpi, {2, 1, 1, 2})};
  const std::string text = Rows(results);
  EXPECT_THAT(text, HasSubstr("implementation  hvdlite_us  without_us"));
  EXPECT_THAT(text, Not(HasSubstr("algbw")));
}

TEST(RowsTest, NoBandwidthForOneRank) {
  Results results = FourRounds();
  results.ranks = 1;
  const std::string text = Rows(results);
  EXPECT_THAT(text, HasSubstr("hvdlite_bench sweep: 1 rank, 4 interleaved"));
  EXPECT_THAT(text, AllOf(HasSubstr("# bytes"), Not(HasSubstr("GB/s"))));
  EXPECT_THAT(
      RowsOnly(text),
      ElementsAre("   4000  ours                  5.50         2.00   2.750 "
                  "[1.500, 4.000]  2 of 4 rounds"));
  EXPECT_THAT(Details(results), Not(HasSubstr("GB/s")));
}

TEST(RowsTest, NoIntervalForOneRound) {
  Results results = FourRounds();
  results.cases[0].before_ns = results.cases[0].after_ns = {1};
  for (Implementation& implementation : results.cases[0].implementations) {
    implementation.samples.resize(
        std::min<size_t>(implementation.samples.size(), 1));
  }
  EXPECT_THAT(Rows(results),
              AllOf(HasSubstr("  1.500 [-]"), Not(HasSubstr("inf"))));
  EXPECT_THAT(Details(results),
              AllOf(HasSubstr("  1.500 [-]"), Not(HasSubstr("inf"))));
}

TEST(RowsTest, WarningsArePrinted) {
  const std::string text = Rows(FourRounds());
  EXPECT_THAT(text, HasSubstr("# A note.\n"));
  EXPECT_THAT(text, HasSubstr("# absent skipped: not available\n"));
  EXPECT_THAT(text, HasSubstr("# cores far from each other in 1 of 4 rounds"));
  EXPECT_THAT(text, HasSubstr("# 1 of 4 rounds dropped"));
  EXPECT_THAT(text, Not(HasSubstr("WRONG")));
  EXPECT_EQ(FourRounds().exit_code(), 0);
}

TEST(RowsTest, WrongResultsAreReportedLast) {
  Results results = FourRounds();
  results.cases[0].implementations[1].samples[2].wrong = 17;
  EXPECT_EQ(results.wrong(), 17);
  EXPECT_EQ(results.exit_code(), 3);
  EXPECT_THAT(Rows(results),
              EndsWith("# WRONG RESULTS: 17 elements differ from the expected "
                       "sum\n"));
}

TEST(DetailsTest, NearAndFarAreSeparate) {
  const std::string text = Details(FourRounds());
  EXPECT_THAT(text, HasSubstr("processor: Some CPU"));
  EXPECT_THAT(text, HasSubstr("Cores near, 2 rounds:"));
  EXPECT_THAT(text, HasSubstr("Cores far, 1 round:\n"));
  EXPECT_THAT(text, HasSubstr("\n1 round dropped"));
  EXPECT_THAT(text, HasSubstr("absent skipped: not available"));
  EXPECT_THAT(text, HasSubstr("ours                              2.750 [1.500, "
                              "4.000]"));
  EXPECT_THAT(text, HasSubstr("  1.500  4.000\n"));
}

TEST(DetailsTest, BandwidthUsesTheMedian) {
  // 4000 bytes in 40 us; four ranks send 1.5 times as much.
  EXPECT_THAT(Details(FourRounds()),
              AllOf(HasSubstr("algbw_GB/s  busbw_GB/s\n"),
                    HasSubstr("        0.10        0.15\n")));
}

TEST(JsonTest, HoldsSamplesDistancesAndRatios) {
  Results results = FourRounds();
  results.cases[0].implementations[0].samples[1].raw = {39, 40, 41};
  const nlohmann::json json = nlohmann::json::parse(ToJson(results));
  const nlohmann::json a_case = json["cases"][0];
  EXPECT_EQ(a_case["bytes"], 4000);
  EXPECT_EQ(a_case["distance"],
            nlohmann::json({"near", "far", "moved", "near"}));
  EXPECT_EQ(a_case["implementations"][2]["samples"],
            nlohmann::json({4.0, 20.0, 1.0, 2.0}));
  EXPECT_EQ(a_case["implementations"][0]["raw"][1].size(), 3u);
  EXPECT_EQ(a_case["implementations"][0]["ratio_to_best_mpi"]["near"]["median"],
            2.75);
  EXPECT_EQ(a_case["implementations"][4]["skipped"], "not available");
  EXPECT_EQ(json["machine"]["processor"], "Some CPU");
}

TEST(OperationTimesTest, FromLastStartToLastEndOnOneClock) {
  // Rank 0 runs from 10 to 30 and 40 to 45, rank 1 from 20 to 25 and 40 to 50.
  const std::vector<double> start = {10, 40, 20, 40};
  const std::vector<double> end = {30, 45, 25, 50};
  EXPECT_THAT(OperationTimes(start, end, 2, true), ElementsAre(10, 10));
  EXPECT_THAT(OperationTimes(start, end, 2, false), ElementsAre(20, 10));
}

TEST(OperationTimesTest, Percentile99UsesSingleOperations) {
  Case median;
  median.name = "together";
  median.implementations = {WithTimes("ours", Role::kHvdlite, {50})};
  median.implementations[0].samples[0].raw = {0, 100};
  const Case tail = Percentile99(median);
  EXPECT_EQ(tail.name, "together_p99");
  EXPECT_DOUBLE_EQ(tail.implementations[0].samples[0].value, 99);
  EXPECT_THAT(tail.implementations[0].samples[0].raw, IsEmpty());
}

TEST(TestValuesTest, ExactSumsAreRight) {
  std::vector<float> sum(20000, 0);
  for (int rank = 0; rank < 3; ++rank) {
    std::vector<float> data(sum.size());
    TestValues(rank, 3).Fill(absl::MakeSpan(data), 5);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += data[i];
  }
  EXPECT_EQ(TestValues(1, 3).CountWrong(sum, 5), 0);
}

TEST(TestValuesTest, MisplacedLostAndDoubledElementsAreWrong) {
  const TestValues values(0, 2);
  std::vector<float> data(1 << 20);
  values.Fill(absl::MakeSpan(data));
  // One rank's input instead of the sum; a rank's shift is not 0.
  EXPECT_GE(values.CountWrong(data), (1 << 20) - 256);
  // In a world of one rank, sums are inputs. Shifts by any power of two are
  // detected.
  const TestValues alone(0, 1);
  alone.Fill(absl::MakeSpan(data));
  EXPECT_EQ(alone.CountWrong(data), 0);
  for (size_t shift = 1; shift < data.size(); shift *= 2) {
    EXPECT_EQ(alone.CountWrong(absl::MakeConstSpan(data).subspan(shift)),
              static_cast<int64_t>(data.size() - shift))
        << shift;
  }
}

TEST(BindingTest, EveryRankNeedsItsOwnCore) {
  EXPECT_TRUE(BoundToOneCoreEach({"0", "1"}, {"a", "a"}));
  EXPECT_TRUE(BoundToOneCoreEach({"0", "0"}, {"a", "b"}));
  EXPECT_FALSE(BoundToOneCoreEach({"0", "0"}, {"a", "a"}));
  EXPECT_FALSE(BoundToOneCoreEach({"0-1", "2"}, {"a", "a"}));
  EXPECT_FALSE(BoundToOneCoreEach({""}, {"a"}));
}

TEST(MachineTest, LineHasProcessorCoresAndCommit) {
  Results results;
  results.machine = {{"processor", "Some CPU"},
                     {"cores", "2 cores with 4 hardware threads, 1 socket"},
                     {"kernel", "Linux"},
                     {"commit", "abc123"}};
  EXPECT_EQ(MachineLine(results), "Some CPU, 2 cores, commit abc123");
}

TEST(MachineTest, HasCommitAndVariablesOfMpi) {
  const auto machine = DescribeMachine(
      base::FakeEnvironment({{"OMPI_MCA_pml", "ucx"}, {"HOME", "/root"}}),
      "abc123");
  EXPECT_EQ(machine.at("commit"), "abc123");
  EXPECT_EQ(machine.at("OMPI_MCA_pml"), "ucx");
  EXPECT_EQ(machine.count("HOME"), 0u);
}

TEST(Resnet50GradientsTest, Has161GradientsAsPublished) {
  const std::vector<int64_t> elements = support::Resnet50GradientElements();
  EXPECT_EQ(elements.size(), 161u);
  EXPECT_EQ(std::accumulate(elements.begin(), elements.end(), int64_t{0}),
            25557032);
}

TEST(Resnet50GradientsTest, OrderIsClassifierToFirstConvolution) {
  const std::vector<int64_t> elements = support::Resnet50GradientElements();
  EXPECT_EQ(elements[0], 1000);
  EXPECT_EQ(elements[1], 2048 * 1000);
  EXPECT_EQ(elements[4], 512 * 2048);
  EXPECT_EQ(elements.back(), 3 * 64 * 7 * 7);
}

TEST(TransformerGradientsTest, Has146GradientsForTwelveLayers) {
  const std::vector<int64_t> elements = support::TransformerGradientElements();
  EXPECT_EQ(elements.size(), 146u);
  EXPECT_EQ(std::accumulate(elements.begin(), elements.end(), int64_t{0}),
            85056000);
  EXPECT_EQ(elements.back(), 3 * 768 * 768);
}

TEST(WorkloadsTest, UnknownNameIsAnErrorWithAllNames) {
  EXPECT_EQ(WorkloadNamed("one_4_bytes").elements.size(), 1u);
  try {
    WorkloadNamed("resnet51");
    FAIL() << "no exception";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("resnet50 transformer"));
  }
}

}  // namespace
}  // namespace hvdlite::tools
