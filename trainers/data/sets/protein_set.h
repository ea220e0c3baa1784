// Proteins with their secondary structure: CullPDB and CB513 as prepared by
// Zhou and Troyanskaya ("Deep Supervised and Convolutional Generative
// Stochastic Network for Protein Secondary Structure Prediction", ICML 2014).
// https://www.princeton.edu/~jzthree/datasets/ICML2014/dataset_readme.txt
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/progress_line.h"
#include "trainers/data/formats/npy.h"

namespace hvdlite::trainers {

// The letters of a Protein's numbers: amino acids (X is unknown), and the eight
// states of DSSP (L is a loop or irregular).
inline constexpr std::string_view kResidueLetters = "ACEDGFIHKMLNQPSRTWVYX";
inline constexpr std::string_view kStructureLetters = "LBEGIHST";
inline constexpr int64_t kResidueKinds = 21;
inline constexpr int64_t kStructureKinds = 8;
inline constexpr int64_t kMaxProteinLength = 700;

struct Protein {
  std::vector<uint8_t> residues;    // below kResidueKinds
  std::vector<uint8_t> structures;  // below kStructureKinds, one per residue
};

using ProteinSet = std::vector<Protein>;

// A protein is a row of the array: kMaxProteinLength positions of these
// columns:
//    0-20  one-hot residue, in the order of kResidueLetters
//      21  1 after the end of the sequence
//   22-29  one-hot structure, in the order of kStructureLetters
//      30  1 after the end of the sequence
//   31-32  1 at the N-terminal residue, 1 at the C-terminal one
//   33-34  relative and absolute solvent accessibility
//   35-56  sequence profile, in the order of kProfileLetters; the last is 1
//          after the end of the sequence
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

// The source of a row, for error messages.
struct ProteinRowSource {
  std::string_view file;  // in quotes
  int64_t protein = 0;
  int64_t offset_bytes = 0;  // offset of the row
  int64_t element_bytes = 4;
};

// Returns residues and structures of a row of kProteinRowSize numbers. The
// sequence ends where column 30 becomes 1. Throws an InputError with file,
// protein, residue and offset in these cases: one of columns 0-30 is neither 0
// nor 1; a residue within the sequence has not exactly one 1 in columns 0-20
// and 22-29, or has a 1 in column 21; after the end, columns 0-20 and 22-29 are
// not all 0, or column 30 is not 1; or the sequence is empty.
Protein DecodeProteinRow(std::span<const float> row,
                         const ProteinRowSource& source);

// Fills a row of kProteinRowSize numbers. The profile is that of a family with
// no other member: 1 for the residue itself. The solvent accessibility is 0.
void EncodeProteinRow(const Protein& protein, std::span<float> row);

// Reads an array of N proteins in NPY format (npy.h), gzipped or not, of shape
// (N, 700 * 57) or (N, 700, 57); the 57 columns are described above. Keeps one
// row in memory at a time and shows progress. Throws an InputError with file,
// protein, residue and offset if the file cannot be read or does not hold such
// proteins.
ProteinSet ReadProteins(
    const std::filesystem::path& file,
    support::ProgressStyle style = support::ProgressStyle::kNone);

// Writes proteins of 1 to kMaxProteinLength residues as an array of shape (N,
// 700 * 57), gzipped if the file's name ends in .gz, and shows progress. Throws
// InputError on failure.
void WriteProteins(
    const std::filesystem::path& file, const ProteinSet& proteins,
    NpyElement element,
    support::ProgressStyle style = support::ProgressStyle::kNone);

// The names of the files, without a possible .gz.
inline constexpr char kCullPdbFile[] = "cullpdb+profile_6133.npy";
inline constexpr char kFilteredCullPdbFile[] =
    "cullpdb+profile_6133_filtered.npy";
inline constexpr char kCb513File[] = "cb513+profile_split1.npy";

struct ProteinSplit {
  ProteinSet train;
  ProteinSet validation;
  ProteinSet test;
  std::string source = {};  // the files' names
};

// Divides the proteins of kCullPdbFile as its authors did: of 6133, [0, 5600)
// are for training, [5605, 5877) for testing and [5877, 6133) for validation.
// Another number of proteins, such as in a generated file, is divided at the
// same fractions, rounded down; parts may be empty.
ProteinSplit SplitCullPdb(const ProteinSet& proteins);

// Reads the training and test sets from `data_dir`, as the pssp-transformer
// project does: kFilteredCullPdbFile, with 5534 proteins that are not similar
// to any of CB513, is the training set, and kCb513File the test set. If one of
// them is missing, reads kCullPdbFile and divides it. If a file exists plain
// and gzipped, reads the plain one. Throws InputError if a file is missing or
// wrong, or if a part would be empty.
ProteinSplit ReadProteinSplit(
    const std::filesystem::path& data_dir,
    support::ProgressStyle style = support::ProgressStyle::kNone);

// Reads kCb513File: 514 proteins (the last two are overlapping parts of one).
// Throws InputError if it is missing or wrong.
ProteinSet ReadCb513(const std::filesystem::path& data_dir);

}  // namespace hvdlite::trainers
