#include "torch_plugin/optimizer/even_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hvdlite::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(EvenSplitTest, LargestGroupIsAsSmallAsTheOrderAllows) {
  EXPECT_THAT(
      SplitEvenly({1, 1, 1, 1, 4, 1}, 3),
      ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4), ElementsAre(5)));
  EXPECT_THAT(SplitEvenly({5, 1, 1, 1, 1, 1}, 2),
              ElementsAre(ElementsAre(0), ElementsAre(1, 2, 3, 4, 5)));
  EXPECT_THAT(SplitEvenly({1, 2, 3}, 1), ElementsAre(ElementsAre(0, 1, 2)));
}

TEST(EvenSplitTest, NoGroupIsEmpty) {
  EXPECT_THAT(SplitEvenly({9, 0, 0}, 3),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
  EXPECT_THAT(SplitEvenly({0, 0, 9, 0}, 2),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3)));
  EXPECT_THAT(SplitEvenly({1, 1}, 5),
              ElementsAre(ElementsAre(0), ElementsAre(1)));
  EXPECT_THAT(SplitEvenly({}, 2), IsEmpty());
}

}  // namespace
}  // namespace hvdlite::internal
