#include "bench/hvdlite_bench/tuned_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace hvdlite::tools {
namespace {

using collective::AllreduceAlgorithm;
using collective::AllreduceChoice;
using collective::AllreduceTable;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kAnySize = std::numeric_limits<int64_t>::max();

// Five rounds around the given time of each candidate; 0: not measured.
MeasuredSize Size(int64_t bytes, const std::vector<double>& times) {
  MeasuredSize size = {bytes, {}};
  for (const double time : times) {
    size.times.emplace_back();
    if (time == 0) continue;
    for (const double noise : {0.99, 1.0, 1.01, 0.995, 1.005}) {
      size.times.back().push_back(time * noise);
    }
  }
  return size;
}

AllreduceTable Parsed(const std::string& text) {
  const auto table = AllreduceTable::Parse(text);
  EXPECT_TRUE(table.ok()) << table.status() << "\n" << text;
  return table.ok() ? *table : AllreduceTable::BuiltIn();
}

TEST(ChooseByTimesTest, ChangesAfterTwoClearWinsInARow) {
  EXPECT_THAT(ChooseByTimes({Size(1, {2, 1}), Size(2, {2, 2}), Size(4, {2, 3}),
                             Size(8, {2, 4}), Size(16, {2, 5})}),
              ElementsAre(1, 1, 0, 0, 0));
}

TEST(ChooseByTimesTest, OneFasterSizeChangesNothing) {
  EXPECT_THAT(ChooseByTimes({Size(1, {1, 2}), Size(2, {3, 2}), Size(4, {1, 2}),
                             Size(8, {3, 2})}),
              ElementsAre(0, 0, 0, 0));
}

TEST(ChooseByTimesTest, AFewPercentChangeNothing) {
  EXPECT_THAT(ChooseByTimes({Size(1, {1.00, 1.01}), Size(2, {1.00, 0.96}),
                             Size(4, {1.00, 0.96}), Size(8, {1.00, 0.96})}),
              ElementsAre(0, 0, 0, 0));
}

TEST(ChooseByTimesTest, LargeVarianceChangesNothing) {
  std::vector<MeasuredSize> sizes = {Size(1, {1, 2}), Size(2, {1, 0.8}),
                                     Size(4, {1, 0.8}), Size(8, {1, 0.8})};
  EXPECT_THAT(ChooseByTimes(sizes), ElementsAre(0, 1, 1, 1));
  for (MeasuredSize& size : sizes) {
    size.times[1][0] = size.times[1][1] = 3;  // in two rounds of five
  }
  EXPECT_THAT(ChooseByTimes(sizes), ElementsAre(0, 0, 0, 0));
}

TEST(ChooseByTimesTest, FastestOfSeveralFasterOnesWins) {
  EXPECT_THAT(ChooseByTimes(
                  {Size(1, {1, 2, 2}), Size(2, {4, 2, 1}), Size(4, {4, 2, 1})}),
              ElementsAre(0, 2, 2));
}

TEST(ChooseByTimesTest, CandidateThatNoLongerFitsIsReplaced) {
  EXPECT_THAT(ChooseByTimes({Size(1, {1, 2, 3}), Size(2, {1, 2, 3}),
                             Size(4, {0, 3, 2}), Size(8, {0, 3, 2})}),
              ElementsAre(0, 0, 2, 2));
}

TEST(ChooseByTimesTest, OneSizeIsEnoughIfTheNextDoesNotFit) {
  EXPECT_THAT(
      ChooseByTimes({Size(1, {1, 2}), Size(2, {3, 2}), Size(4, {0, 2})}),
      ElementsAre(0, 1, 1));
}

TEST(CandidatesTest, RowsOfCandidatesChooseThem) {
  for (const TableWorld world : {TableWorld{1, 2}, TableWorld{1, 4},
                                 TableWorld{2, 2}, TableWorld{16, 48}}) {
    const std::vector<Candidate> candidates = CandidatesFor(world);
    EXPECT_EQ(candidates[0].min_bytes, 0);
    EXPECT_EQ(candidates[0].max_bytes, kAnySize);
    std::set<std::string> names;
    for (const Candidate& candidate : candidates) {
      EXPECT_TRUE(names.insert(candidate.name()).second) << candidate.name();
      const AllreduceTable table =
          Parsed(TableRow(world, candidate, candidate.max_bytes));
      const AllreduceChoice choice =
          table.Choose(world.nodes, world.ranks_per_node, 4096);
      EXPECT_EQ(choice.algorithm, candidate.choice.algorithm);
      EXPECT_EQ(choice.chunk_bytes, candidate.choice.chunk_bytes);
      EXPECT_EQ(choice.streaming, candidate.choice.streaming);
    }
  }
}

TEST(CandidatesTest, IncludeChoicesOfTheBuiltInTable) {
  for (const TableWorld world : {TableWorld{1, 2}, TableWorld{1, 3},
                                 TableWorld{1, 4}, TableWorld{2, 2}}) {
    for (int64_t bytes = 4; bytes <= int64_t{64} << 20; bytes *= 2) {
      const AllreduceChoice choice = AllreduceTable::BuiltIn().Choose(
          world.nodes, world.ranks_per_node, static_cast<size_t>(bytes));
      const std::vector<Candidate> candidates = CandidatesFor(world);
      const int found = FindCandidate(candidates, choice, bytes);
      ASSERT_GE(found, 0) << bytes;
      EXPECT_EQ(candidates[found].choice.algorithm, choice.algorithm);
    }
  }
}

TEST(WorldTest, RanksPerNodeAreThoseOfTheSmallestNode) {
  const TableWorld world = WorldOf({0, 0, 1, 0, 1});
  EXPECT_EQ(world.nodes, 2);
  EXPECT_EQ(world.ranks_per_node, 2);
  // The data plane counts a node with one rank as one with two.
  EXPECT_EQ(WorldOf({0, 1, 0}).ranks_per_node, 2);
  EXPECT_EQ(WorldOf({0, 0, 0}).nodes, 1);
}

TEST(WorldTest, OneRankPerHostIsAnError) {
  for (const std::vector<int>& nodes : {std::vector<int>{0}, {0, 1, 2}}) {
    try {
      (void)WorldOf(nodes);
      FAIL() << "no exception";
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), HasSubstr("start two ranks per host"));
    }
  }
}

// One-shot up to 4096 bytes, then two-shot in chunks of 512K, then of 2M.
std::string Section(const TableWorld& world, const std::string& header) {
  const std::vector<Candidate> candidates = CandidatesFor(world);
  std::vector<MeasuredSize> sizes;
  for (const int64_t bytes : {1024, 4096, 1 << 16, 1 << 20, 1 << 21}) {
    sizes.push_back({bytes, {}});
  }
  return TableSection(world, candidates, sizes, {4, 4, 0, 2, 2}, header);
}

TEST(TableSectionTest, ParsedSectionMakesTheSameChoices) {
  const std::string section = Section({1, 3}, "Some CPU\noversubscribed");
  EXPECT_THAT(section, HasSubstr("# Some CPU\n# oversubscribed\n"));
  const AllreduceTable table = Parsed(section);
  const auto at = [&](size_t bytes) { return table.Choose(1, 3, bytes); };
  EXPECT_EQ(at(1).algorithm, AllreduceAlgorithm::kOneShot);
  EXPECT_EQ(at(4096).algorithm, AllreduceAlgorithm::kOneShot);
  EXPECT_EQ(at(4097).algorithm, AllreduceAlgorithm::kTwoShot);
  EXPECT_EQ(at(65536).chunk_bytes, size_t{512} << 10);
  EXPECT_EQ(at(65537).chunk_bytes, size_t{2} << 20);
  EXPECT_EQ(at(size_t{1} << 40).chunk_bytes, size_t{2} << 20);
  // Three rows, and no rows for other worlds.
  EXPECT_EQ(std::count(section.begin(), section.end(), '\n'), 6);
  EXPECT_EQ(table.Describe(1, 2), "");
}

TEST(TableSectionTest, OneShotChunksAreRoundedUp) {
  const TableWorld world = {1, 2};
  const AllreduceTable table = Parsed(TableSection(
      world, CandidatesFor(world), {{100, {}}, {200, {}}}, {4, 4}, "x"));
  EXPECT_EQ(table.Choose(1, 2, 200).algorithm, AllreduceAlgorithm::kOneShot);
  EXPECT_EQ(table.Choose(1, 2, 200).chunk_bytes, 256u);
  // Sizes above one-shot's limit have a row, too.
  EXPECT_EQ(table.Choose(1, 2, 201).algorithm, AllreduceAlgorithm::kTwoShot);
  EXPECT_NE(table.Describe(1, 2).find("inf"), std::string::npos);
}

TEST(WithSectionTest, KeepsRowsOfOtherWorldsAndReplacesItsOwn) {
  std::string table;
  for (const TableWorld world : {TableWorld{1, 2}, {1, 3}, {1, 2}}) {
    const std::string header = table.empty() ? "first" : "later";
    const auto merged = WithSection(table, world, Section(world, header));
    ASSERT_TRUE(merged.ok()) << merged.status();
    table = *merged;
  }
  EXPECT_THAT(table, Not(HasSubstr("first")));
  const AllreduceTable parsed = Parsed(table);
  EXPECT_EQ(parsed.Describe(1, 2), Parsed(Section({1, 2}, "")).Describe(1, 2));
  EXPECT_EQ(parsed.Describe(1, 3), Parsed(Section({1, 3}, "")).Describe(1, 3));
}

TEST(WithSectionTest, SectionIsAfterTheHeadAndBeforeRanges) {
  const auto merged = WithSection(
      "# About this file.\n\n# All.\n1 2- inf two-shot 64K cached\n"
      "1 2 inf two-shot 128K cached\n",
      {1, 2}, Section({1, 2}, "new"));
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_THAT(*merged, ::testing::StartsWith("# About this file.\n\n# new\n"));
  EXPECT_THAT(*merged, HasSubstr("# All.\n1 2- inf two-shot 64K cached\n"));
  EXPECT_THAT(*merged, Not(HasSubstr("128K")));
  const AllreduceTable table = Parsed(*merged);
  EXPECT_EQ(table.Choose(1, 2, 1 << 22).chunk_bytes, size_t{2} << 20);
  EXPECT_EQ(table.Choose(1, 5, 1 << 22).chunk_bytes, size_t{64} << 10);
}

TEST(WithSectionTest, InvalidTableIsAnErrorWithTheLine) {
  const auto merged = WithSection("# x\nhello\n", {1, 2}, "");
  ASSERT_FALSE(merged.ok());
  EXPECT_THAT(std::string(merged.status().message()),
              HasSubstr("line 2 'hello'"));
}

TEST(DescribePlacesTest, MoreRanksThanCoresAreOversubscribed) {
  EXPECT_EQ(DescribePlaces({{0, "a", {0}}, {0, "a", {1}}}),
            "2 ranks, 1 host (a), 2 cores");
  EXPECT_EQ(
      DescribePlaces({{0, "a", {0, 1}}, {0, "a", {0, 1}}, {0, "a", {0, 1}}}),
      "3 ranks, 1 host (a), 2 cores, oversubscribed");
  EXPECT_EQ(DescribePlaces({{0, "a", {0}}, {0, "a", {0}}}),
            "2 ranks, 1 host (a), 1 core, oversubscribed");
}

TEST(DescribePlacesTest, HostsOfOneMachineShareItsCores) {
  EXPECT_EQ(DescribePlaces({{0, "a", {0, 1}},
                            {0, "a", {0, 1}},
                            {0, "b", {0, 1}},
                            {0, "b", {0, 1}}}),
            "4 ranks, 2 hosts (a, b) on 1 machine, 2 cores, oversubscribed");
  EXPECT_EQ(DescribePlaces({{0, "a", {0, 1}},
                            {0, "a", {0, 1}},
                            {2, "b", {0, 1}},
                            {2, "b", {0, 1}}}),
            "4 ranks, 2 hosts (a, b), 4 cores");
}

TEST(DescribeOthersTest, MachineUseWithoutItsRanks) {
  const std::vector<RankPlace> two = {{0, "a", {0}}, {0, "a", {1}}};
  const auto rank = [](double process, double machine) {
    return RankWork{
        .seconds = 10, .process = process, .machine = machine, .cpus = 2};
  };
  EXPECT_EQ(DescribeOthers(two, {rank(9, 19), rank(10, 19)}),
            "0.00 of 2 CPUs: quiet");
  EXPECT_EQ(DescribeOthers(two, {rank(5, 19), rank(10, 19)}),
            "0.40 of 2 CPUs: busy");
  EXPECT_EQ(DescribeOthers(two, {rank(5, 0), rank(10, 0)}), "");
  // The busier one of two machines.
  EXPECT_EQ(DescribeOthers({{0, "a", {0}}, {1, "b", {0}}},
                           {rank(10, 10), rank(10, 15)}),
            "0.50 of 2 CPUs: busy");
}

}  // namespace
}  // namespace hvdlite::tools
