// Proteins with their secondary structure: CullPDB and CB513 as prepared by
// Zhou and Troyanskaya ("Deep Supervised and Convolutional Generative
// Stochastic Network for Protein Secondary Structure Prediction", ICML 2014).
// https://www.princeton.edu/~jzthree/datasets/ICML2014/dataset_readme.txt
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "trainers/data/formats/npy_header.h"

namespace hvdlite::trainers {

// What the numbers of a Protein stand for: amino acids (X is an unknown one),
// and the eight states of DSSP (L is a loop or irregular).
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

// Reads an array of N proteins in NPY format (npy.h), gzipped or not, of shape
// (N, 700 * 57) or (N, 700, 57); protein_row.h describes the 57 columns. Holds
// one row in memory at a time. Throws InputError, with file, protein, residue
// and offset, if the file cannot be read or does not hold such proteins.
ProteinSet ReadProteins(const std::filesystem::path& file);

// Writes proteins of 1 to kMaxProteinLength residues as an array of shape
// (N, 700 * 57), gzipped if the file's name ends in .gz. Throws InputError if
// that fails.
void WriteProteins(const std::filesystem::path& file,
                   const ProteinSet& proteins, NpyElement element);

// The names of the files, less the .gz that they may end in.
inline constexpr char kCullPdbFile[] = "cullpdb+profile_6133.npy";
inline constexpr char kFilteredCullPdbFile[] =
    "cullpdb+profile_6133_filtered.npy";
inline constexpr char kCb513File[] = "cb513+profile_split1.npy";

struct ProteinSplit {
  ProteinSet train;
  ProteinSet validation;
  ProteinSet test;
};

// Divides the proteins of kCullPdbFile as its authors did: of 6133, [0, 5600)
// are for training, [5605, 5877) test and [5877, 6133) validation. Another
// number, such as that of a generated file, is divided at the same fractions of
// it, rounded down; parts may be empty.
ProteinSplit SplitCullPdb(const ProteinSet& proteins);

// Divides those of kFilteredCullPdbFile, none of which is similar to one of
// CB513: of 5534, [0, 5278) are for training and [5278, 5534) validation.
// Another number is divided at the same fraction. The test set is left empty.
ProteinSplit SplitFilteredCullPdb(const ProteinSet& proteins);

// Reads kCullPdbFile from `data_dir` and splits it; or, if that is not there,
// kFilteredCullPdbFile, with kCb513File as its test set. Of a plain file and a
// gzipped one, reads the plain. Throws InputError if a file is missing or
// wrong, or if a part would be empty.
ProteinSplit ReadProteinSplit(const std::filesystem::path& data_dir);

// Reads kCb513File: 514 proteins (the last two are overlapping parts of one).
// Throws InputError if it is missing or wrong.
ProteinSet ReadCb513(const std::filesystem::path& data_dir);

}  // namespace hvdlite::trainers
