#include "tools/doctor/checks/tournament.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace hvdlite::doctor {
namespace {

TEST(TournamentTest, EveryTwoRanksMeetOnceInDisjointPairs) {
  for (int size = 1; size <= 17; ++size) {
    std::set<std::pair<int, int>> met;
    for (int round = 0; round < TournamentRounds(size); ++round) {
      for (int rank = 0; rank < size; ++rank) {
        const int partner = PartnerInRound(size, rank, round);
        if (partner < 0) continue;
        ASSERT_NE(partner, rank);
        ASSERT_LT(partner, size);
        EXPECT_EQ(PartnerInRound(size, partner, round), rank);
        if (rank < partner) {
          EXPECT_TRUE(met.insert({rank, partner}).second)
              << rank << " and " << partner << " of " << size;
        }
      }
    }
    EXPECT_EQ(met.size(), static_cast<size_t>(size * (size - 1) / 2)) << size;
  }
}

TEST(TournamentTest, TakesAsManyRoundsAsThereAreRanks) {
  EXPECT_EQ(TournamentRounds(1), 0);
  EXPECT_EQ(TournamentRounds(2), 1);
  EXPECT_EQ(TournamentRounds(64), 63);
  EXPECT_EQ(TournamentRounds(7), 7);
}

}  // namespace
}  // namespace hvdlite::doctor
