#include "trainers/data/sets/protein_set.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "support/input_error.h"
#include "trainers/data/formats/data_file.h"
#include "trainers/data/formats/npy.h"

namespace hvdlite::trainers {
namespace {

namespace fs = std::filesystem;

// Columns of which exactly one is 1.
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
             "the sequence has both a residue and an end here; expected one "
             "of them");
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
    throw support::InputError(
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

  // Returns the index of the column that is 1, relative to the first of the
  // columns.
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
             "the sequence continues after its end at residue " +
                 std::to_string(length));
      }
    }
  }

  const std::span<const float> row_;
  const ProteinRowSource& source_;
};

using Shape = std::vector<int64_t>;

std::string ToString(const Shape& shape) {
  std::string text;
  for (const int64_t size : shape) {
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  }
  return "(" + text + ")";
}

void RequireProteinShape(const NpyReader& reader) {
  const Shape& shape = reader.shape();
  if (!shape.empty() && shape[0] > 0 &&
      (Shape(shape.begin() + 1, shape.end()) == Shape{kProteinRowSize} ||
       Shape(shape.begin() + 1, shape.end()) ==
           Shape{kMaxProteinLength, kProteinColumns})) {
    return;
  }
  throw support::InputError(reader.name() + " has shape " + ToString(shape) +
                            " in its header, before offset " +
                            std::to_string(reader.offset_bytes()) +
                            "; expected (N, 39900) or (N, 700, 57) with N > 0");
}

// Bounds in the authors' files.
constexpr int64_t kCullPdbSize = 6133;
constexpr int64_t kTrainEnd = 5600;
constexpr int64_t kTestBegin = 5605;
constexpr int64_t kTestEnd = 5877;

[[noreturn]] void FailToFind(const std::string& what,
                             const fs::path& directory) {
  throw support::InputError(
      "no " + what + " in '" + directory.string() +
      "'; expected the data of Zhou and Troyanskaya (2014), "
      "gzipped or not (generate_pssp makes small files in its "
      "format)");
}

// Returns proteins [first, last) of `all`. The bounds refer to a set of `size`
// proteins and are scaled to the size of `all`.
ProteinSet Slice(const ProteinSet& all, int64_t first, int64_t last,
                 int64_t size) {
  const auto count = static_cast<int64_t>(all.size());
  return {all.begin() + count * first / size,
          all.begin() + count * last / size};
}

void RequireNoEmptyPart(const ProteinSplit& split, const fs::path& file) {
  if (!split.train.empty() && !split.validation.empty() &&
      !split.test.empty()) {
    return;
  }
  throw support::InputError(
      "'" + file.string() +
      "' has too few proteins to divide: the training, validation or test "
      "set would be empty; expected at least 50");
}

support::ProgressLine Progress(const std::string& what, const fs::path& file,
                               support::ProgressStyle style) {
  return support::ProgressLine(
      {.item = what + " " + file.filename().string() + ": protein",
       .items = "proteins",
       .style = style});
}

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

ProteinSet ReadProteins(const fs::path& file, support::ProgressStyle style) {
  NpyReader reader(file);
  RequireProteinShape(reader);
  support::ProgressLine line = Progress("reading", file, style);
  ProteinSet proteins;
  std::vector<float> row(kProteinRowSize);
  while (reader.remaining() > 0) {
    const ProteinRowSource source{
        .file = reader.name(),
        .protein = static_cast<int64_t>(proteins.size()),
        .offset_bytes = reader.offset_bytes(),
        .element_bytes = ElementBytes(reader.element())};
    reader.Read(row, "protein " + std::to_string(source.protein));
    proteins.push_back(DecodeProteinRow(row, source));
    line.Show(source.protein + 1, reader.shape()[0]);
  }
  return proteins;
}

void WriteProteins(const fs::path& file, const ProteinSet& proteins,
                   NpyElement element, support::ProgressStyle style) {
  const auto count = static_cast<int64_t>(proteins.size());
  NpyWriter writer(file,
                   {.element = element, .shape = {count, kProteinRowSize}});
  support::ProgressLine line = Progress("writing", file, style);
  std::vector<float> row(kProteinRowSize);
  for (int64_t i = 0; i < count; ++i) {
    EncodeProteinRow(proteins[static_cast<size_t>(i)], row);
    writer.Write(row);
    line.Show(i + 1, count);
  }
  writer.Close();
}

ProteinSplit SplitCullPdb(const ProteinSet& proteins) {
  return {.train = Slice(proteins, 0, kTrainEnd, kCullPdbSize),
          .validation = Slice(proteins, kTestEnd, kCullPdbSize, kCullPdbSize),
          .test = Slice(proteins, kTestBegin, kTestEnd, kCullPdbSize)};
}

ProteinSplit ReadProteinSplit(const fs::path& data_dir,
                              support::ProgressStyle style) {
  RequireDataDirectory(data_dir);
  const auto unfiltered = FindPlainOrGzipped(data_dir, kCullPdbFile);
  const auto filtered = FindPlainOrGzipped(data_dir, kFilteredCullPdbFile);
  const auto cb513 = FindPlainOrGzipped(data_dir, kCb513File);
  if (filtered && (cb513 || !unfiltered)) {
    // Read the smaller file first, so that its absence is reported early.
    ProteinSet test = ReadCb513(data_dir);
    return {.train = ReadProteins(*filtered, style),
            .validation = {},
            .test = std::move(test),
            .source = filtered->filename().string() + " and " +
                      cb513->filename().string()};
  }
  if (!unfiltered) {
    FailToFind(std::string(kFilteredCullPdbFile) + " and no " + kCullPdbFile,
               data_dir);
  }
  ProteinSplit split = SplitCullPdb(ReadProteins(*unfiltered, style));
  RequireNoEmptyPart(split, *unfiltered);
  split.source = unfiltered->filename().string();
  return split;
}

ProteinSet ReadCb513(const fs::path& data_dir) {
  RequireDataDirectory(data_dir);
  const std::optional<fs::path> file = FindPlainOrGzipped(data_dir, kCb513File);
  if (!file) FailToFind(kCb513File, data_dir);
  return ReadProteins(*file);
}

}  // namespace hvdlite::trainers
