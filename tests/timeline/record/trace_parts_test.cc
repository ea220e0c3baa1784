#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/fakes/test_files.h"
#include "timeline/record/trace_format.h"
#include "timeline/record/trace_recorder.h"

namespace hvdlite::timeline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(TracePartsTest, RankFilesAreNamedAfterTheirRank) {
  EXPECT_EQ(TracePartPath("trace.json", 1), "trace.json.rank00001");
  EXPECT_EQ(TracePartPath("a/t", 123456), "a/t.rank123456");
}

TEST(TracePartsTest, NamesOfRankFilesAreRecognised) {
  EXPECT_TRUE(IsTracePartPath("trace.json.rank00000"));
  EXPECT_TRUE(IsTracePartPath("x.rank123456"));
  EXPECT_FALSE(IsTracePartPath("trace.json"));
  EXPECT_FALSE(IsTracePartPath("trace.rank1"));
  EXPECT_FALSE(IsTracePartPath("trace.rank00001.json"));
}

TEST(TracePartsTest, TracesOfLaterWorldsAreNumbered) {
  EXPECT_EQ(PathOfNextWorld("a.b/trace.json"), "a.b/trace.world2.json");
  EXPECT_EQ(PathOfNextWorld("trace.world2.json"), "trace.world3.json");
  EXPECT_EQ(PathOfNextWorld("trace.world.json"), "trace.world.world2.json");
  EXPECT_EQ(PathOfNextWorld("trace"), "trace.world2");
}

TEST(TracePartsTest, FindsTheRankFilesOfOneTrace) {
  const TemporaryDirectory directory;
  for (const char* name :
       {"t.rank00002", "t.rank00010", "u.rank00001", "t.rank3", "t.rankfoo"}) {
    WriteFile(directory.File(name), "");
  }
  EXPECT_THAT(FindTraceParts(directory.File("t")),
              ElementsAre(Pair(2, directory.File("t.rank00002")),
                          Pair(10, directory.File("t.rank00010"))));
  EXPECT_THAT(FindTraceParts("/nonexistent/t"), IsEmpty());
}

}  // namespace
}  // namespace hvdlite::timeline
