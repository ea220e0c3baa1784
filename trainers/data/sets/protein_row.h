// A protein as a row of the arrays of Zhou and Troyanskaya (2014).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "trainers/data/sets/protein_set.h"

namespace hvdlite::trainers {

// A row has kMaxProteinLength positions of these columns:
//    0-20  one-hot residue, in the order of kResidueLetters
//      21  1 after the end of the sequence
//   22-29  one-hot structure, in the order of kStructureLetters
//      30  1 after the end of the sequence
//   31-32  1 at the N-terminal residue, 1 at the C-terminal one
//   33-34  relative and absolute solvent accessibility
//   35-56  sequence profile, in the order of kProfileLetters; the last after
//   the
//          end of the sequence
inline constexpr int64_t kProteinColumns = 57;
inline constexpr int64_t kProteinRowSize = kMaxProteinLength * kProteinColumns;
inline constexpr int64_t kResidueColumn = 0;
inline constexpr int64_t kNoResidueColumn = 21;
inline constexpr int64_t kStructureColumn = 22;
inline constexpr int64_t kNoStructureColumn = 30;
inline constexpr int64_t kNTerminalColumn = 31;
inline constexpr int64_t kCTerminalColumn = 32;
inline constexpr int64_t kProfileColumn = 35;
inline constexpr int64_t kNoProfileColumn = 56;
inline constexpr std::string_view kProfileLetters = "ACDEFGHIKLMNPQRSTVWXY";

// Where a row comes from, for the messages of errors.
struct ProteinRowSource {
  std::string_view file;  // in quotes
  int64_t protein = 0;
  int64_t offset_bytes = 0;  // of the row
  int64_t element_bytes = 4;
};

// Takes residues and structures out of a row of kProteinRowSize numbers. The
// sequence ends where column 30 becomes 1. Throws InputError, with file,
// protein, residue and offset, if one of columns 0-30 is neither 0 nor 1, if a
// residue within the sequence has none or several ones in columns 0-20 or
// 22-29, or one in column 21, if there is anything but zeros in columns 0-20
// and 22-29 or no one in column 30 after its end, or if it is empty.
Protein DecodeProteinRow(std::span<const float> row,
                         const ProteinRowSource& source);

// Fills a row of kProteinRowSize numbers. The profile is that of a family with
// no other member: 1 for the residue itself; the solvent accessibility is 0.
void EncodeProteinRow(const Protein& protein, std::span<float> row);

}  // namespace hvdlite::trainers
