#include "trainers/data/formats/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "support/input_error.h"
#include "tests/testing/fakes/file_bytes.h"
#include "tests/testing/fakes/temporary_directory.h"
#include "tests/trainers/data/npy_array.h"

namespace hvdlite::trainers {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

std::string LittleEndian(uint64_t value, int size_bytes) {
  std::string bytes;
  for (int i = 0; i < size_bytes; ++i) {
    bytes += static_cast<char>(value >> 8 * i);
  }
  return bytes;
}

// The start of a file of version `major`.0, with `text` as its header.
std::string Header(const std::string& text, char major = 1) {
  return std::string("\x93NUMPY") + major + '\0' +
         LittleEndian(text.size(), major == 1 ? 2 : 4) + text;
}

std::string Floats(std::initializer_list<float> values) {
  std::string bytes;
  for (const float value : values) {
    bytes += LittleEndian(std::bit_cast<uint32_t>(value), 4);
  }
  return bytes;
}

std::string Doubles(std::initializer_list<double> values) {
  std::string bytes;
  for (const double value : values) {
    bytes += LittleEndian(std::bit_cast<uint64_t>(value), 8);
  }
  return bytes;
}

const std::string kTwoByThree =
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";

class NpyTest : public ::testing::Test {
 protected:
  NpyArray ReadBytes(const std::string& bytes) const {
    WriteFileBytes(file_, bytes);
    return ReadNpy(file_);
  }

  // Expects that a file of these bytes is an error whose message names the file
  // and has `part`.
  void ExpectRefused(const std::string& bytes, const std::string& part) const {
    EXPECT_THAT([&] { ReadBytes(bytes); },
                ThrowsMessage<support::InputError>(AllOf(
                    HasSubstr("'" + file_.string() + "'"), HasSubstr(part))));
  }

  const TemporaryDirectory directory_;
  const std::filesystem::path file_ = directory_ / "array.npy";
};

TEST_F(NpyTest, ReadsFloatsOfAllFormatVersions) {
  for (const char major : {1, 2, 3}) {
    const NpyArray array = ReadBytes(Header(kTwoByThree, major) +
                                     Floats({1, 2.5, -3, 4, 5, 1e-30F}));
    EXPECT_THAT(array.shape, ElementsAre(2, 3));
    EXPECT_THAT(array.values, ElementsAre(1, 2.5, -3, 4, 5, 1e-30F));
  }
}

TEST_F(NpyTest, RoundsDoubles) {
  const NpyArray array = ReadBytes(
      Header("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }") +
      Doubles({1, 0.1, -1e100}));
  EXPECT_THAT(array.shape, ElementsAre(3));
  EXPECT_THAT(array.values,
              ElementsAre(1, 0.1F, -std::numeric_limits<float>::infinity()));
}

TEST_F(NpyTest, UnderstandsHeadersOfOtherWriters) {
  EXPECT_THAT(ReadBytes(Header("{\"shape\":(2L,3L),\"fortran_order\":False,"
                               "\"descr\":\"<f4\"}  \n") +
                        Floats({1, 2, 3, 4, 5, 6}))
                  .shape,
              ElementsAre(2, 3));
}

TEST_F(NpyTest, ReadsScalarsAndEmptyArrays) {
  const NpyArray scalar = ReadBytes(
      Header("{'descr': '<f4', 'fortran_order': False, 'shape': (), }") +
      Floats({7}));
  EXPECT_THAT(scalar.shape, IsEmpty());
  EXPECT_THAT(scalar.values, ElementsAre(7));
  const NpyArray empty = ReadBytes(
      Header("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3), }"));
  EXPECT_THAT(empty.shape, ElementsAre(0, 3));
  EXPECT_THAT(empty.values, IsEmpty());
}

TEST_F(NpyTest, ReadsBackWhatItWrites) {
  const std::vector<std::vector<int64_t>> shapes = {
      {}, {5}, {2, 3}, {2, 3, 4}, {0, 3}};
  for (const char* const name : {"array.npy", "array.npy.gz"}) {
    for (const auto element : {NpyElement::kFloat32, NpyElement::kFloat64}) {
      for (const std::vector<int64_t>& shape : shapes) {
        NpyArray array{.shape = shape, .values = {}};
        for (int64_t i = 0; i < ElementCount(shape); ++i) {
          array.values.push_back(0.1F * static_cast<float>(i));
        }
        WriteNpy(directory_ / name, array, element);
        const NpyArray read = ReadNpy(directory_ / name);
        EXPECT_EQ(read.shape, array.shape);
        EXPECT_EQ(read.values, array.values);
      }
    }
  }
}

TEST_F(NpyTest, ReadsBackMoreThanOneBlock) {
  NpyArray array{.shape = {3, 200000}, .values = {}};
  for (int i = 0; i < 600000; ++i) {
    array.values.push_back(static_cast<float>(i));
  }
  WriteNpy(file_, array, NpyElement::kFloat64);
  EXPECT_EQ(ReadNpy(file_).values, array.values);
}

TEST_F(NpyTest, WritesTheBytesThatNumpyDocuments) {
  WriteNpy(file_, {.shape = {2}, .values = {1, -2}}, NpyElement::kFloat32);
  // The elements start at a multiple of 64 bytes, after a new line.
  std::string text =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  text.resize(117, ' ');
  EXPECT_EQ(FileBytes(file_), Header(text + '\n') + Floats({1, -2}));
}

TEST_F(NpyTest, ReadsPieceByPieceAndReportsTheOffset) {
  WriteFileBytes(file_, Header(kTwoByThree) + Floats({1, 2, 3, 4, 5, 6}));
  NpyReader reader(file_);
  const auto first_bytes = static_cast<int64_t>(Header(kTwoByThree).size());
  EXPECT_THAT(reader.shape(), ElementsAre(2, 3));
  EXPECT_EQ(reader.element(), NpyElement::kFloat32);
  EXPECT_EQ(reader.remaining(), 6);
  EXPECT_EQ(reader.offset_bytes(), first_bytes);
  std::vector<float> row(3);
  reader.Read(row, "row 0");
  EXPECT_THAT(row, ElementsAre(1, 2, 3));
  EXPECT_EQ(reader.remaining(), 3);
  EXPECT_EQ(reader.offset_bytes(), first_bytes + 12);
  reader.Read(row, "row 1");
  EXPECT_THAT(row, ElementsAre(4, 5, 6));
  EXPECT_EQ(reader.remaining(), 0);
}

TEST_F(NpyTest, WrongMagicIsAnError) {
  ExpectRefused("\x93NUMPX", "expected the bytes \\x93NUMPY at offset 0");
  ExpectRefused("\x93NU", "ends at offset 3, in the magic string");
  ExpectRefused(Header(kTwoByThree).substr(0, 40), "ends at offset 40, in ");
}

TEST_F(NpyTest, UnknownVersionIsAnError) {
  ExpectRefused(Header(kTwoByThree, 4),
                "version 4.0 at offset 6; expected 1.0, 2.0 or 3.0");
  ExpectRefused(Header(kTwoByThree, 0), "version 0.0 at offset 6");
  ExpectRefused(std::string("\x93NUMPY\x01\x01", 8), "version 1.1 at offset 6");
}

TEST_F(NpyTest, HugeHeaderIsAnError) {
  ExpectRefused(std::string("\x93NUMPY\x02\0", 8) + LittleEndian(65536, 4),
                "header of 65536 bytes according to offset 8");
}

TEST_F(NpyTest, MissingElementsAreAnError) {
  ExpectRefused(Header(kTwoByThree) + Floats({1, 2, 3, 4, 5}),
                "ends at offset " +
                    std::to_string(Header(kTwoByThree).size() + 20) +
                    ", in the elements: expected 4 more bytes");
}

TEST_F(NpyTest, MissingElementsNameThePiece) {
  WriteFileBytes(file_, Header(kTwoByThree) + Floats({1, 2, 3, 4, 5}));
  NpyReader reader(file_);
  std::vector<float> row(3);
  reader.Read(row, "row 0");
  EXPECT_THAT(
      [&] { reader.Read(row, "row 1"); },
      ThrowsMessage<support::InputError>(HasSubstr("in row 1: expected 4")));
}

TEST_F(NpyTest, ElementsAreNotAllocatedBeforeTheyAreRead) {
  ExpectRefused(Header("{'descr': '<f4', 'fortran_order': False, 'shape': "
                       "(1000000000000,), }") +
                    Floats({1}),
                "in the elements");
}

TEST_F(NpyTest, TrailingBytesAreAnError) {
  ExpectRefused(Header(kTwoByThree) + Floats({1, 2, 3, 4, 5, 6}) + "x",
                "has more data than expected: its end should be at offset " +
                    std::to_string(Header(kTwoByThree).size() + 24));
  ExpectRefused(
      Header("{'descr': '<f4', 'fortran_order': False, 'shape': (0,), }") + "x",
      "has more data than expected");
}

TEST_F(NpyTest, FortranOrderIsAnError) {
  ExpectRefused(
      Header("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }"),
      ", at offset 10; expected C order");
}

TEST_F(NpyTest, OtherElementTypeIsAnErrorThatNamesIt) {
  for (const std::string descr :
       {">f4", "=f4", "|f4", "f4", "<f2", "<i4", ""}) {
    ExpectRefused(Header("{'descr': '" + descr +
                         "', 'fortran_order': False, 'shape': (2, 3), }"),
                  "elements of type '" + descr + "'");
  }
}

TEST_F(NpyTest, OverflowOfTheShapeIsAnError) {
  ExpectRefused(Header("{'descr': '<f4', 'fortran_order': False, 'shape': "
                       "(4294967296, 4294967296), }"),
                "describes too many elements");
  // 2^61 elements fit into an int64_t, but not their bytes.
  ExpectRefused(Header("{'descr': '<f4', 'fortran_order': False, 'shape': "
                       "(2305843009213693952,), }"),
                "describes too many elements");
}

struct MalformedHeader {
  std::string text;
  int offset;  // in the text
  std::string expected;
};

TEST_F(NpyTest, MalformedHeaderIsAnErrorThatNamesTheOffset) {
  const std::vector<MalformedHeader> cases = {
      {"", 0, "found its end, expected '{'"},
      {"['descr']", 0, "found \"['descr']\", expected '{'"},
      {"{descr: '<f4'}", 1, "expected a string in quotes"},
      {"{'descr", 1, "expected a closing quote"},
      {"{'descr' '<f4'}", 9, "expected ':'"},
      {"{'descr': [('x', '<f4')]}", 10, "expected a string in quotes"},
      {"{'descr': '<f4' 'shape': ()}", 16, "expected '}'"},
      {"{'color': 'red'}", 1, "expected 'descr', 'fortran_order' or 'shape'"},
      {"{'shape': (), 'shape': ()}", 14, "expected each key once"},
      {"{'fortran_order': 0}", 18, "found \"0}\", expected True or False"},
      {"{'shape': 3}", 10, "expected '('"},
      {"{'shape': (3)}", 12, "expected ','"},
      {"{'shape': (3 4)}", 13, "expected ','"},
      {"{'shape': (3, 4", 15, "expected ')'"},
      {"{'shape': (3, -4)}", 14, "expected an integer from 0 to 2^63 - 1"},
      {"{'shape': (3, x)}", 14, "expected an integer"},
      {"{'shape': (9223372036854775808,)}", 11, "expected an integer"},
      {"{'shape': (3, 4), }", 0,
       "expected all of 'descr', 'fortran_order' and 'shape'"},
      {kTwoByThree + "x", 60, "found \"x\", expected nothing after '}'"},
  };
  for (const MalformedHeader& malformed : cases) {
    SCOPED_TRACE(malformed.text);
    ExpectRefused(Header(malformed.text),
                  "malformed header at offset " +
                      std::to_string(10 + malformed.offset) + ": found ");
    ExpectRefused(Header(malformed.text), malformed.expected);
  }
}

}  // namespace
}  // namespace hvdlite::trainers
