#include "trainers/data/sets/protein_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "support/input_error.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "tests/trainers/data/npy_array.h"

namespace hvdlite::trainers {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// A protein from one-letter codes.
Protein MakeProtein(std::string_view residues, std::string_view structures) {
  Protein protein;
  for (const char letter : residues) {
    protein.residues.push_back(
        static_cast<uint8_t>(kResidueLetters.find(letter)));
  }
  for (const char letter : structures) {
    protein.structures.push_back(
        static_cast<uint8_t>(kStructureLetters.find(letter)));
  }
  return protein;
}

void ExpectEqual(const ProteinSet& found, const ProteinSet& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].residues, expected[i].residues);
    EXPECT_EQ(found[i].structures, expected[i].structures);
  }
}

// Proteins of length 1, 2, ..., so that the length identifies each.
ProteinSet ProteinsOfLengths(size_t first, size_t last) {
  ProteinSet proteins;
  for (size_t length = first; length <= last; ++length) {
    proteins.push_back({.residues = std::vector<uint8_t>(length, 3),
                        .structures = std::vector<uint8_t>(length, 5)});
  }
  return proteins;
}

std::vector<size_t> Lengths(const ProteinSet& proteins) {
  std::vector<size_t> lengths;
  for (const Protein& protein : proteins) {
    lengths.push_back(protein.residues.size());
  }
  return lengths;
}

class ProteinSetTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const ProteinSet& proteins) const {
    WriteProteins(directory_ / name, proteins, NpyElement::kFloat32);
  }

  const TemporaryDirectory directory_;
  const std::filesystem::path file_ = directory_ / "proteins.npy";
};

TEST_F(ProteinSetTest, ReadsBackWhatItWritesOfAnyLength) {
  const ProteinSet proteins = {
      MakeProtein("ACEDGFIHKMLNQPSRTWVYX", "LBEGIHSTLBEGIHSTLBEGI"),
      MakeProtein("X", "H"), ProteinsOfLengths(700, 700)[0]};
  for (const char* const name : {"a.npy", "a.npy.gz"}) {
    for (const auto element : {NpyElement::kFloat32, NpyElement::kFloat64}) {
      WriteProteins(directory_ / name, proteins, element);
      ExpectEqual(ReadProteins(directory_ / name), proteins);
    }
  }
}

TEST_F(ProteinSetTest, ReadsThreeDimensions) {
  WriteProteins(file_, ProteinsOfLengths(4, 5), NpyElement::kFloat32);
  NpyArray array = ReadNpy(file_);
  ASSERT_THAT(array.shape, ElementsAre(2, 39900));
  array.shape = {2, 700, 57};
  WriteNpy(file_, array, NpyElement::kFloat32);
  ExpectEqual(ReadProteins(file_), ProteinsOfLengths(4, 5));
}

TEST_F(ProteinSetTest, WritesTheDocumentedColumns) {
  Write("proteins.npy", {MakeProtein("AED", "LHT")});
  const std::vector<float> values = ReadNpy(file_).values;
  const auto ones = [&](size_t residue) {
    std::vector<int> columns;
    for (int column = 0; column < 57; ++column) {
      const float value = values[residue * 57 + column];
      EXPECT_TRUE(value == 0 || value == 1);
      if (value == 1) columns.push_back(column);
    }
    return columns;
  };
  EXPECT_THAT(ones(0), ElementsAre(0, 22, 31, 35));
  EXPECT_THAT(ones(1), ElementsAre(2, 27, 38));  // E: 2 in one order, 3 in the
  EXPECT_THAT(ones(2), ElementsAre(3, 29, 32, 37));  // other; D the reverse
  EXPECT_THAT(ones(3), ElementsAre(21, 30, 56));
  EXPECT_THAT(ones(699), ElementsAre(21, 30, 56));
}

TEST_F(ProteinSetTest, OtherShapesAreErrors) {
  const std::vector<std::vector<int64_t>> shapes = {
      {}, {39900}, {0, 39900}, {1, 39899}, {1, 57, 700}, {1, 700, 57, 1}};
  for (const std::vector<int64_t>& shape : shapes) {
    const auto count = static_cast<size_t>(ElementCount(shape));
    WriteNpy(file_, {.shape = shape, .values = std::vector<float>(count)},
             NpyElement::kFloat32);
    EXPECT_THAT([&] { ReadProteins(file_); },
                ThrowsMessage<support::InputError>(
                    AllOf(HasSubstr("'" + file_.string() + "' has shape ("),
                          HasSubstr("before offset 128"),
                          HasSubstr("expected (N, 39900) or (N, 700, 57)"))));
  }
}

TEST_F(ProteinSetTest, TruncatedFileIsAnErrorThatNamesTheProtein) {
  Write("proteins.npy", ProteinsOfLengths(1, 3));
  std::filesystem::resize_file(file_, 128 + 39900 * 4 * 2 + 100);
  EXPECT_THAT([&] { ReadProteins(file_); },
              ThrowsMessage<support::InputError>(HasSubstr(
                  "ends at offset 319428, in protein 2: expected 159500")));
}

// Errors of single numbers in protein 1, with the residues "ACE" and the
// structure "HHL".
struct BadNumber {
  std::string name;
  int residue;
  int column;
  float value;
  std::string problem;
};

class BadNumberTest : public ::testing::TestWithParam<BadNumber> {};

TEST_P(BadNumberTest, IsAnErrorThatNamesFileProteinResidueAndOffset) {
  const BadNumber& bad = GetParam();
  const TemporaryDirectory directory;
  const std::filesystem::path file = directory / "proteins.npy.gz";
  for (const auto element : {NpyElement::kFloat32, NpyElement::kFloat64}) {
    WriteProteins(file, {MakeProtein("A", "L"), MakeProtein("ACE", "HHL")},
                  element);
    NpyArray array = ReadNpy(file);
    const int64_t index = kProteinRowSize + bad.residue * 57 + bad.column;
    array.values[index] = bad.value;
    WriteNpy(file, array, element);
    EXPECT_THAT(
        [&] { ReadProteins(file); },
        ThrowsMessage<support::InputError>(AllOf(
            HasSubstr("protein 1, residue " + std::to_string(bad.residue) +
                      " of '" + file.string() + "': " + bad.problem),
            HasSubstr("offset " +
                      std::to_string(128 + index * ElementBytes(element))))));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Numbers, BadNumberTest,
    ::testing::Values(
        BadNumber{"Fraction", 1, 0, 0.5F, "found 0.500000, expected 0 or 1"},
        BadNumber{"NotANumber", 0, 22, std::numeric_limits<float>::quiet_NaN(),
                  "found nan, expected 0 or 1"},
        BadNumber{"NegativeStructure", 2, 29, -1, "found -1.000000, expected"},
        BadNumber{"EndThatIsNeitherZeroNorOne", 1, 30, 2, "found 2.000000"},
        BadNumber{"ResidueEndThatIsNeitherZeroNorOne", 1, 21, 2, "found 2.0"},
        BadNumber{"FractionAfterTheEnd", 500, 7, 0.5F, "found 0.500000"},
        BadNumber{"SecondResidue", 1, 20, 1,
                  "found residue 'C' and also 'X', expected one"},
        BadNumber{"SecondStructure", 1, 28, 1,
                  "found structure 'H' and also 'S', expected one"},
        BadNumber{"ResidueThatHasEnded", 2, 21, 1,
                  "the sequence has both a residue and an end here"},
        BadNumber{"ResidueAfterTheEnd", 3, 4, 1,
                  "the sequence continues after its end at residue 3"},
        BadNumber{"StructureAfterTheEnd", 699, 22, 1,
                  "the sequence continues after its end at residue 3"},
        BadNumber{"SecondBeginning", 4, 30, 0,
                  "the sequence continues after its end at residue 3"},
        BadNumber{"EmptySequence", 0, 30, 1, "the sequence is empty"}),
    [](const auto& info) { return info.param.name; });

TEST(MissingNumberTest, MissingResidueOrStructureIsAnError) {
  const TemporaryDirectory directory;
  const std::filesystem::path file = directory / "proteins.npy";
  WriteProteins(file, {MakeProtein("AC", "HH")}, NpyElement::kFloat32);
  const NpyArray array = ReadNpy(file);
  NpyArray without_residue = array;
  without_residue.values[57 + 1] = 0;
  WriteNpy(file, without_residue, NpyElement::kFloat32);
  EXPECT_THAT([&] { ReadProteins(file); },
              ThrowsMessage<support::InputError>(AllOf(
                  HasSubstr("protein 0, residue 1"),
                  HasSubstr("found no residue, expected one (column 0, at "
                            "offset 356)"))));
  NpyArray without_structure = array;
  without_structure.values[22 + 5] = 0;
  WriteNpy(file, without_structure, NpyElement::kFloat32);
  EXPECT_THAT([&] { ReadProteins(file); },
              ThrowsMessage<support::InputError>(AllOf(
                  HasSubstr("protein 0, residue 0"),
                  HasSubstr("found no structure, expected one (column 22, at "
                            "offset 216)"))));
}

TEST(ProteinRowTest, EndOfTheResiduesNeedNotBeMarked) {
  std::vector<float> row(kProteinRowSize);
  EncodeProteinRow(MakeProtein("AC", "HL"), row);
  for (size_t i = 2; i < 700; ++i) row[i * 57 + 21] = 0;
  EXPECT_EQ(DecodeProteinRow(row, {.file = "'a'"}).residues.size(), 2U);
}

TEST_F(ProteinSetTest, DividesCullPdbAtTheSameFractionsForAnySize) {
  Write("cullpdb+profile_6133.npy.gz", ProteinsOfLengths(1, 100));
  // The test set is not CB513, even if that exists.
  Write("cb513+profile_split1.npy", ProteinsOfLengths(200, 203));
  const ProteinSplit split = ReadProteinSplit(directory_.path());
  // 100 * 5600 / 6133 = 91.3, 100 * 5605 / 6133 = 91.4, 5877 gives 95.8.
  ExpectEqual(split.train, ProteinsOfLengths(1, 91));
  ExpectEqual(split.test, ProteinsOfLengths(92, 95));
  ExpectEqual(split.validation, ProteinsOfLengths(96, 100));
  ExpectEqual(ReadCb513(directory_.path()), ProteinsOfLengths(200, 203));
}

TEST_F(ProteinSetTest, TrainsWithAllOfTheFilteredSetAndTestsOnCb513) {
  Write("cullpdb+profile_6133_filtered.npy", ProteinsOfLengths(1, 40));
  Write("cb513+profile_split1.npy.gz", ProteinsOfLengths(50, 53));
  const ProteinSplit split = ReadProteinSplit(directory_.path());
  ExpectEqual(split.train, ProteinsOfLengths(1, 40));
  ExpectEqual(split.validation, {});
  ExpectEqual(split.test, ProteinsOfLengths(50, 53));
  EXPECT_EQ(
      split.source,
      "cullpdb+profile_6133_filtered.npy and cb513+profile_split1.npy.gz");
}

TEST_F(ProteinSetTest, PrefersCompleteFilteredPairAndPlainFiles) {
  const auto first_length = [&] {
    return Lengths(ReadProteinSplit(directory_.path()).train).front();
  };
  Write("cullpdb+profile_6133.npy.gz", ProteinsOfLengths(100, 150));
  Write("cullpdb+profile_6133_filtered.npy", ProteinsOfLengths(1, 40));
  EXPECT_EQ(first_length(), 100U);  // CB513 is missing
  Write("cullpdb+profile_6133.npy", ProteinsOfLengths(200, 250));
  EXPECT_EQ(first_length(), 200U);
  EXPECT_EQ(ReadProteinSplit(directory_.path()).source,
            "cullpdb+profile_6133.npy");
  Write("cb513+profile_split1.npy.gz", ProteinsOfLengths(50, 53));
  EXPECT_EQ(first_length(), 1U);
}

TEST(ProteinSplitTest, DividesTheRealSizesAsDocumented) {
  // The residues of a protein are the digits of its number.
  const auto numbered = [](int count) {
    ProteinSet proteins;
    for (int i = 0; i < count; ++i) {
      const auto high = static_cast<uint8_t>(i / 400);
      const auto middle = static_cast<uint8_t>(i / 20 % 20);
      const auto low = static_cast<uint8_t>(i % 20);
      proteins.push_back({.residues = {high, middle, low}, .structures = {}});
    }
    return proteins;
  };
  const auto range = [&](int first, int last) {
    const ProteinSet all = numbered(last);
    return ProteinSet(all.begin() + first, all.end());
  };
  const ProteinSplit split = SplitCullPdb(numbered(6133));
  ExpectEqual(split.train, range(0, 5600));
  ExpectEqual(split.test, range(5605, 5877));
  ExpectEqual(split.validation, range(5877, 6133));
}

TEST_F(ProteinSetTest, EmptyPartIsAnError) {
  Write("cullpdb+profile_6133.npy", ProteinsOfLengths(1, 10));
  EXPECT_THAT([&] { ReadProteinSplit(directory_.path()); },
              ThrowsMessage<support::InputError>(
                  AllOf(HasSubstr("cullpdb+profile_6133.npy'"),
                        HasSubstr("too few proteins"))));
}

TEST_F(ProteinSetTest, FiftyProteinsAreEnough) {
  Write("cullpdb+profile_6133.npy", ProteinsOfLengths(1, 50));
  EXPECT_NO_THROW(ReadProteinSplit(directory_.path()));
}

TEST_F(ProteinSetTest, MissingFilesAreAnErrorThatNamesThemAndTheGenerator) {
  EXPECT_THAT([&] { ReadProteinSplit(directory_.path()); },
              ThrowsMessage<support::InputError>(
                  AllOf(HasSubstr("'" + directory_.path().string() + "'"),
                        HasSubstr("no cullpdb+profile_6133_filtered.npy and no "
                                  "cullpdb+profile_6133.npy in "),
                        HasSubstr("generate_pssp"))));
  Write("cullpdb+profile_6133_filtered.npy", ProteinsOfLengths(1, 40));
  EXPECT_THAT([&] { ReadProteinSplit(directory_.path()); },
              ThrowsMessage<support::InputError>(
                  AllOf(HasSubstr("no cb513+profile_split1.npy in "),
                        HasSubstr("generate_pssp"))));
}

TEST_F(ProteinSetTest, InvalidDataDirectoryIsAnError) {
  EXPECT_THAT([] { ReadProteinSplit("/nonexistent/data"); },
              ThrowsMessage<support::InputError>(
                  AllOf(HasSubstr("/nonexistent/data"),
                        HasSubstr("No such file or directory"))));
  Write("file.npy", ProteinsOfLengths(1, 1));
  EXPECT_THAT([&] { ReadCb513(directory_ / "file.npy"); },
              ThrowsMessage<support::InputError>(HasSubstr("Not a directory")));
}

}  // namespace
}  // namespace hvdlite::trainers
