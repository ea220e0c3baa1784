#include "support/text_table.h"

#include <gtest/gtest.h>

#include <string>

namespace hvdlite::support {
namespace {

TEST(TextTableTest, ColumnsAreAsWideAsTheirWidestCell) {
  EXPECT_EQ(TextTable({"a", "bb"}, {{"ccc", "d"}}),
            "a    bb\n-------\nccc  d\n");
}

TEST(TextTableTest, NumbersAreAlignedRightUnlessTheirColumnHasText) {
  EXPECT_EQ(
      TextTable({"number", "text", "e"},
                {{"+1.5 %", "10", "e"}, {"(20)", "ten", "5"}, {"-", "", ""}}),
      "number  text  e\n"
      "---------------\n"
      "+1.5 %  10    e\n"
      "  (20)  ten   5\n"
      "     -\n");
}

TEST(TextTableTest, WidthCountsCharactersNotBytes) {
  EXPECT_EQ(TextTable({"a", "b"}, {{"\u00b5s", "x"}, {"ms", "y"}}),
            "a   b\n-----\n\u00b5s  x\nms  y\n");
}

TEST(TextTableTest, TotalsAreBelowARule) {
  EXPECT_EQ(TextTable({"a"}, {{"x"}, {"y"}}, {.has_totals = true}),
            "a\n-\nx\n-\ny\n");
}

TEST(TextTableTest, TitlesCanBeComments) {
  EXPECT_EQ(TextTable({"a", "b"}, {{"x", "0.9 [0.8, 1]"}, {"total", "2"}},
                      {.has_totals = true, .titles_are_comments = true}),
            "# a                 b\n"
            "  x      0.9 [0.8, 1]\n"
            "  total             2\n");
}

TEST(TextTableTest, CommentMarksCountInTheWidth) {
  const std::string wide(kTextTableWidth - 7, 'x');
  const TextTableForm form = {.keys = 1, .titles_are_comments = true};
  EXPECT_EQ(TextTable({"k", "a", "b"}, {{"1", wide, "2"}}, form),
            "# k  a\n  1  " + wide + "\n\n# k  b\n  1  2\n");
}

TEST(TextTableTest, WideTablesContinueBelowWithTheirKeys) {
  const std::string wide(60, 'x');
  const std::string rule(63, '-');
  EXPECT_EQ(TextTable({"k", "a", "b"}, {{"1", wide, wide}}, {.keys = 1}),
            "k  a\n" + rule + "\n1  " + wide + "\n\nk  b\n" + rule + "\n1  " +
                wide + "\n");
}

TEST(TextTableTest, TitlesThatAreTooWideAreWrapped) {
  const std::string wide(90, 'x');
  EXPECT_EQ(TextTable({"k", "a long title (ms)", "b"}, {{wide, "12", "3"}}),
            std::string(96, ' ') + "a long\nk" + std::string(91, ' ') +
                "title (ms)  b\n" + std::string(105, '-') + "\n" + wide +
                "          12  3\n");
}

TEST(WrappedTest, BreaksLinesBetweenWords) {
  const std::string wide(60, 'x');
  EXPECT_EQ(Wrapped(wide + " y " + wide + " z"), wide + " y\n" + wide + " z\n");
  const std::string wider(kTextTableWidth + 1, 'x');
  EXPECT_EQ(Wrapped("a " + wider + " b"), "a\n" + wider + "\nb\n");
}

TEST(WrappedTest, FurtherLinesAreIndentedByTheHead) {
  const std::string wide(60, 'x');
  EXPECT_EQ(Wrapped(wide + " " + wide, "\u00b5s: "),
            "\u00b5s: " + wide + "\n    " + wide + "\n");
}

TEST(WrappedTest, TextIsBelowAWideHead) {
  const std::string head(60, 'h');
  EXPECT_EQ(Wrapped("a b", head + "  "), head + "\n    a b\n");
}

TEST(CsvTableTest, QuotesOnlyIfNecessary) {
  EXPECT_EQ(CsvTable({"a", "b", "c"}, {{"x,y", "say \"z\"", "r\r"}}),
            "a,b,c\n\"x,y\",\"say \"\"z\"\"\",\"r\r\"\n");
}

TEST(CountedTest, OneIsSingular) {
  EXPECT_EQ(Counted(1, "rank"), "1 rank");
  EXPECT_EQ(Counted(0, "rank"), "0 ranks");
  EXPECT_EQ(Counted(2, "rank"), "2 ranks");
}

TEST(NumberTextTest, HasFourDigitsOrAllDigitsBeforeThePoint) {
  EXPECT_EQ(NumberText(0.012344), "0.01234");
  EXPECT_EQ(NumberText(123.45), "123.5");
  EXPECT_EQ(NumberText(9999.4), "9999");
  EXPECT_EQ(NumberText(9999.6), "10000");
  EXPECT_EQ(NumberText(19812.3), "19812");
  EXPECT_EQ(NumberText(-1e6), "-1000000");
  EXPECT_EQ(NumberText(0), "0");
}

}  // namespace
}  // namespace hvdlite::support
