#include "collective/shm/allreduce_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "collective/shm/allreduce_table_text.h"

namespace hvdlite::collective {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

void ExpectChoice(const AllreduceChoice& choice, AllreduceAlgorithm algorithm,
                  size_t chunk_bytes, bool streaming) {
  EXPECT_EQ(choice.algorithm, algorithm)
      << std::string(NameOf(choice.algorithm));
  EXPECT_EQ(choice.chunk_bytes, chunk_bytes);
  EXPECT_EQ(choice.streaming, streaming);
}

TEST(AllreduceTableTest, FirstMatchingLineDecides) {
  const auto table = AllreduceTable::Parse(R"(
# nodes ranks bytes algorithm chunk stores
1    2-4  4K   one-shot    4K   cached
1    2-   1M   two-shot   64K  cached      # a comment
1    2-   inf  two-shot   512K streaming
2-8  4    inf  hierarchical 1M   cached
)");
  ASSERT_TRUE(table.ok()) << table.status();
  ExpectChoice(table->Choose(1, 2, 4096), AllreduceAlgorithm::kOneShot, 4096,
               false);
  ExpectChoice(table->Choose(1, 2, 4097), AllreduceAlgorithm::kTwoShot, 65536,
               false);
  ExpectChoice(table->Choose(1, 5, 1), AllreduceAlgorithm::kTwoShot, 65536,
               false);
  ExpectChoice(table->Choose(1, 2, 1 << 21), AllreduceAlgorithm::kTwoShot,
               512 << 10, true);
  ExpectChoice(table->Choose(8, 4, 1), AllreduceAlgorithm::kHierarchical,
               1 << 20, false);
}

TEST(AllreduceTableTest, NamesOfTheFirstReleaseAreAccepted) {
  const auto table = AllreduceTable::Parse(
      "1 2- 4K at-once 4K cached\n1 2- inf slices 64K cached\n"
      "2- 2- inf two-levels 1M cached\n");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->Choose(1, 2, 1).algorithm, AllreduceAlgorithm::kOneShot);
  EXPECT_EQ(table->Choose(1, 2, 8192).algorithm, AllreduceAlgorithm::kTwoShot);
  EXPECT_EQ(table->Choose(2, 2, 1).algorithm,
            AllreduceAlgorithm::kHierarchical);
}

TEST(AllreduceTableTest, SeveralNodesAreFlatWithoutAMatchingLine) {
  const auto table = AllreduceTable::Parse("");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->Choose(2, 4, 1 << 20).algorithm, AllreduceAlgorithm::kFlat);
  EXPECT_EQ(table->Choose(1, 1, 1 << 20).algorithm, AllreduceAlgorithm::kFlat);
  EXPECT_EQ(table->Choose(1, 2, 1 << 20).algorithm,
            AllreduceAlgorithm::kTwoShot);
}

TEST(AllreduceTableTest, OneOrderReplacesFlatIfNodesHaveSeveralRanks) {
  const auto table = AllreduceTable::Parse(
      "2- 1- 64K flat 0 cached\n3- 2- inf hierarchical 1M streaming\n");
  ASSERT_TRUE(table.ok()) << table.status();
  const AllreduceTable one_order = table->WithOneOrder();
  ExpectChoice(one_order.Choose(2, 2, 4), AllreduceAlgorithm::kHierarchical,
               AllreduceTable::kMaxChunkBytes, false);
  ExpectChoice(one_order.Choose(2, 2, 1 << 20),
               AllreduceAlgorithm::kHierarchical,
               AllreduceTable::kMaxChunkBytes, false);
  ExpectChoice(one_order.Choose(3, 2, 1 << 20),
               AllreduceAlgorithm::kHierarchical, 1 << 20, true);
  ExpectChoice(one_order.Choose(2, 1, 4), AllreduceAlgorithm::kFlat, 0, false);
}

TEST(AllreduceTableTest, DescriptionHasTheLinesThatCanMatch) {
  const auto table = AllreduceTable::Parse(
      "1 2- 4K one-shot 4K cached\n2- 2- inf hierarchical 1M cached\n");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->Describe(1, 2), "1 2- 4K one-shot 4K cached\n");
  EXPECT_EQ(table->Describe(3, 2), "2- 2- inf hierarchical 1M cached\n");
  EXPECT_EQ(table->Describe(3, 1), "");
}

TEST(AllreduceTableTest, BuiltInTableIsValidAndCoversEveryLayout) {
  const AllreduceTable table = AllreduceTable::BuiltIn();
  for (const int nodes : {1, 2, 128}) {
    for (const int ranks : {1, 2, 4, 48}) {
      if (nodes * ranks == 1) continue;
      EXPECT_NE(table.Describe(nodes, ranks), "") << nodes << " x " << ranks;
    }
  }
}

// The rows of one paragraph of a table, and the comment above them.
struct Paragraph {
  std::string comment;
  std::vector<std::string> rows;
};

std::vector<Paragraph> ParagraphsOf(const std::string& table) {
  std::vector<Paragraph> paragraphs(1);
  for (const absl::string_view line : absl::StrSplit(table, '\n')) {
    if (line.empty()) {
      paragraphs.emplace_back();
    } else if (line.front() == '#') {
      absl::StrAppend(&paragraphs.back().comment, line, "\n");
    } else {
      paragraphs.back().rows.emplace_back(line);
    }
  }
  return paragraphs;
}

TEST(AllreduceTableTest, BuiltInRowsSayHowTheyWereMeasured) {
  for (const Paragraph& paragraph : ParagraphsOf(kAllreduceTableText)) {
    if (paragraph.rows.empty()) continue;
    const std::string& comment = paragraph.comment;
    if (absl::StrContains(comment, "not measured")) continue;
    EXPECT_THAT(comment, ContainsRegex("hvdlite_bench [a-z-]+, "
                                       "20[0-9]{2}-[0-9]{2}-[0-9]{2}"));
    std::smatch counts;
    ASSERT_TRUE(std::regex_search(
        comment, counts, std::regex("([0-9]+) ranks, .* ([0-9]+) cores")))
        << comment;
    EXPECT_EQ(absl::StrContains(comment, "oversubscribed"),
              std::stoi(counts[1]) > std::stoi(counts[2]))
        << comment;
  }
}

TEST(AllreduceTableTest, BuiltInRowsOfSmallWorldsWereMeasured) {
  for (const char* world : {"1 2", "1 3", "1 4", "1 8", "1 16", "2 2"}) {
    const std::vector<Paragraph> paragraphs = ParagraphsOf(kAllreduceTableText);
    const auto of_world = [&](const Paragraph& paragraph) {
      return absl::c_any_of(paragraph.rows, [&](const std::string& row) {
        const std::vector<std::string> words =
            absl::StrSplit(row, ' ', absl::SkipEmpty());
        return absl::StrCat(words[0], " ", words[1]) == world;
      });
    };
    const auto first = absl::c_find_if(paragraphs, of_world);
    ASSERT_NE(first, paragraphs.end()) << world;
    EXPECT_THAT(first->comment, Not(HasSubstr("not measured"))) << world;
  }
}

TEST(AllreduceTableTest, ErrorsNameTheLineAndTheMistake) {
  const struct {
    const char* line;
    const char* problem;
  } cases[] = {
      {"1 2- 4K two-shot", "six columns"},
      {"0 2- 4K two-shot 4K cached", "'0' is not a count"},
      {"3-2 2- 4K flat 0 cached", "'3-2' is not a count"},
      {"1 2-3-4 4K two-shot 4K cached", "'2-3-4' is not a count"},
      {"1 2- 4X two-shot 4K cached", "'4X' is not a number of bytes"},
      {"1 2- 4K ring 4K cached", "'ring' is not one of"},
      {"1 2- 4K two-shot 100 cached", "multiple of 64"},
      {"1 2- 4K two-shot 1G cached", "multiple of 64"},
      {"1 2- 4K two-shot 0 cached", "needs a chunk size"},
      {"1 2- 4K two-shot 4K hot", "neither cached nor streaming"},
      {"2 2- 4K two-shot 4K cached", "needs one node"},
      {"1- 2- 4K hierarchical 4K cached", "at least two nodes"},
      {"2- 1- 4K hierarchical 4K cached", "two ranks per node"},
      {"1 2- 8K one-shot 4K cached", "too small"},
  };
  for (const auto& [line, problem] : cases) {
    const auto table = AllreduceTable::Parse(std::string("# head\n") + line);
    ASSERT_FALSE(table.ok()) << line;
    EXPECT_THAT(
        std::string(table.status().message()),
        AllOf(HasSubstr("line 2"), HasSubstr(line), HasSubstr(problem)));
  }
}

}  // namespace
}  // namespace hvdlite::collective
