#include "tools/doctor/checks/tournament.h"

namespace hvdlite::doctor {

int TournamentRounds(int size) {
  if (size < 2) return 0;
  return size % 2 == 0 ? size - 1 : size;
}

int PartnerInRound(int size, int rank, int round) {
  // All but one, who stays, are on a circle of odd length; those whose numbers
  // add up to the round meet, and who would meet himself meets the one.
  const int circle = TournamentRounds(size);
  const int stays = circle;  // with an odd number of ranks: nobody
  int partner = 0;
  if (rank == stays) {
    partner = static_cast<int>(static_cast<long long>(round) *
                               ((circle + 1) / 2) % circle);
  } else {
    partner = ((round - rank) % circle + circle) % circle;
    if (partner == rank) partner = stays;
  }
  return partner < size ? partner : -1;
}

}  // namespace hvdlite::doctor
