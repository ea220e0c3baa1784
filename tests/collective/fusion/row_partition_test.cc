#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/communicator.h"

namespace hvdlite::testing {
namespace {

using collective::EvenRows;
using ::testing::ElementsAre;

TEST(RowPartitionTest, FirstRanksGetTheRemainder) {
  EXPECT_THAT(EvenRows(7, 3), ElementsAre(3, 2, 2));
  EXPECT_THAT(EvenRows(8, 3), ElementsAre(3, 3, 2));
  EXPECT_THAT(EvenRows(9, 3), ElementsAre(3, 3, 3));
  EXPECT_THAT(EvenRows(2, 4), ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(EvenRows(0, 2), ElementsAre(0, 0));
  EXPECT_THAT(EvenRows(5'000'000'001, 2),
              ElementsAre(2'500'000'001, 2'500'000'000));
}

}  // namespace
}  // namespace hvdlite::testing
