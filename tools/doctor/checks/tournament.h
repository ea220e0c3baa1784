// Rounds in which every two ranks meet once.
#pragma once

namespace hvdlite::doctor {

// How many rounds it takes: size - 1, or size if that is odd.
int TournamentRounds(int size);

// Whom `rank` meets in `round`, or -1: nobody. Pairs of a round are disjoint
// (the circle method of round-robin tournaments).
int PartnerInRound(int size, int rank, int round);

}  // namespace hvdlite::doctor
