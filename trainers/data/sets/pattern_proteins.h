// Proteins whose structure a small network can learn in a few dozen steps.
#pragma once

#include <cstdint>

#include "trainers/data/sets/protein_set.h"

namespace hvdlite::trainers {

struct PatternProteinOptions {
  int64_t count = 0;
  int64_t min_length = 20;  // 1 to max_length
  int64_t max_length = 60;  // to kMaxProteinLength
  uint64_t seed = 1;
};

// Proteins of helices, strands and coils in turn, of random lengths. Each kind
// of segment favours some of the amino acids (those that favour it in nature;
// Chou and Fasman, "Prediction of Protein Conformation", Biochemistry 13,
// 1974), but one residue in five is any of the twenty.
//
// The structure is not that of the segment but a function of five residues, so
// it can be learned without error: the kind that most residues from i - 2 to
// i + 2 favour (where several do, that of residue i among them, or else helix
// before strand before coil) gives H, E or coil; a coil is T (turn) at G and N,
// S (bend) at S and D, and else L. The most frequent of the five is the
// structure of some 40 % of the residues. Depends on its arguments alone;
// proteins of different seeds differ.
ProteinSet MakePatternProteins(const PatternProteinOptions& options);

}  // namespace hvdlite::trainers
