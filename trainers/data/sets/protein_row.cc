#include "trainers/data/sets/protein_row.h"

#include <algorithm>
#include <string>

#include "tools/support/input_error.h"

namespace hvdlite::trainers {
namespace {

// Columns of which one is 1.
struct OneHotColumns {
  const char* name;
  int64_t first;
  std::string_view letters;  // one per column
};
constexpr OneHotColumns kResidueColumns = {"residue", kResidueColumn,
                                           kResidueLetters};
constexpr OneHotColumns kStructureColumns = {"structure", kStructureColumn,
                                             kStructureLetters};

class RowDecoder {
 public:
  RowDecoder(std::span<const float> row, const ProteinRowSource& source)
      : row_(row), source_(source) {}

  Protein Decode() const {
    Protein protein;
    const int64_t length = Length();
    for (int64_t residue = 0; residue < length; ++residue) {
      protein.residues.push_back(OneHot(residue, kResidueColumns));
      protein.structures.push_back(OneHot(residue, kStructureColumns));
      if (IsOne(residue, kNoResidueColumn)) {
        Fail(residue, kNoResidueColumn,
             "the sequence has a residue and has ended; expected one of both");
      }
    }
    for (int64_t residue = length; residue < kMaxProteinLength; ++residue) {
      RequireEnded(residue, length);
    }
    return protein;
  }

 private:
  [[noreturn]] void Fail(int64_t residue, int64_t column,
                         const std::string& problem) const {
    const int64_t element = residue * kProteinColumns + column;
    throw InputError(
        "protein " + std::to_string(source_.protein) + ", residue " +
        std::to_string(residue) + " of " + std::string(source_.file) + ": " +
        problem + " (column " + std::to_string(column) + ", at offset " +
        std::to_string(source_.offset_bytes + element * source_.element_bytes) +
        ")");
  }

  bool IsOne(int64_t residue, int64_t column) const {
    const float value =
        row_[static_cast<size_t>(residue * kProteinColumns + column)];
    if (value != 0 && value != 1) {
      Fail(residue, column,
           "found " + std::to_string(value) + ", expected 0 or 1");
    }
    return value == 1;
  }

  int64_t Length() const {
    int64_t length = 0;
    while (length < kMaxProteinLength && !IsOne(length, kNoStructureColumn)) {
      ++length;
    }
    if (length == 0) {
      Fail(0, kNoStructureColumn,
           "the sequence is empty; expected at least one residue");
    }
    return length;
  }

  // Which of the columns is 1, counted from their first.
  uint8_t OneHot(int64_t residue, const OneHotColumns& columns) const {
    const auto letter = [&](int64_t index) {
      return std::string("'") + columns.letters[static_cast<size_t>(index)] +
             "'";
    };
    const auto count = static_cast<int64_t>(columns.letters.size());
    int64_t found = -1;
    for (int64_t i = 0; i < count; ++i) {
      if (!IsOne(residue, columns.first + i)) continue;
      if (found >= 0) {
        Fail(residue, columns.first + i,
             std::string("found ") + columns.name + " " + letter(found) +
                 " and also " + letter(i) + ", expected one");
      }
      found = i;
    }
    if (found < 0) {
      Fail(residue, columns.first,
           std::string("found no ") + columns.name + ", expected one");
    }
    return static_cast<uint8_t>(found);
  }

  void RequireEnded(int64_t residue, int64_t length) const {
    for (int64_t column = 0; column <= kNoStructureColumn; ++column) {
      const bool one = IsOne(residue, column);
      if (column != kNoResidueColumn && one != (column == kNoStructureColumn)) {
        Fail(residue, column,
             "the sequence goes on after its end at residue " +
                 std::to_string(length));
      }
    }
  }

  const std::span<const float> row_;
  const ProteinRowSource& source_;
};

}  // namespace

Protein DecodeProteinRow(std::span<const float> row,
                         const ProteinRowSource& source) {
  return RowDecoder(row, source).Decode();
}

void EncodeProteinRow(const Protein& protein, std::span<float> row) {
  const size_t length = protein.residues.size();
  std::fill(row.begin(), row.end(), 0.0F);
  for (size_t i = 0; i < kMaxProteinLength; ++i) {
    const std::span<float> columns =
        row.subspan(i * kProteinColumns, kProteinColumns);
    if (i >= length) {
      columns[kNoResidueColumn] = 1;
      columns[kNoStructureColumn] = 1;
      columns[kNoProfileColumn] = 1;
      continue;
    }
    const char letter = kResidueLetters[protein.residues[i]];
    columns[kResidueColumn + protein.residues[i]] = 1;
    columns[kStructureColumn + protein.structures[i]] = 1;
    columns[kProfileColumn + kProfileLetters.find(letter)] = 1;
    columns[kNTerminalColumn] = i == 0 ? 1 : 0;
    columns[kCTerminalColumn] = i == length - 1 ? 1 : 0;
  }
}

}  // namespace hvdlite::trainers
