#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/support/processor.h"

namespace hvdlite::base {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(CpuListTest, IsWrittenAndReadAsLinuxDoes) {
  EXPECT_EQ(FormatCpuList({3, 0, 1, 2, 8, 11, 10}), "0-3,8,10-11");
  EXPECT_EQ(FormatCpuList({}), "");
  EXPECT_THAT(*ParseCpuList(" 0-2,8\n"), ElementsAre(0, 1, 2, 8));
  EXPECT_THAT(*ParseCpuList(""), IsEmpty());
  for (const char* text : {"a", "2-1", "1-2-3", "-1"}) {
    EXPECT_FALSE(ParseCpuList(text).ok()) << text;
  }
}

TEST(CpuListTest, SomeCpusAreAllowed) {
  EXPECT_THAT(AllowedCpus(), testing::Not(IsEmpty()));
}

}  // namespace
}  // namespace hvdlite::base
