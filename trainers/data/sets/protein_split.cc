#include <optional>
#include <string>
#include <utility>

#include "tools/support/input_error.h"
#include "trainers/data/formats/find_file.h"
#include "trainers/data/sets/protein_set.h"

namespace hvdlite::trainers {
namespace {

namespace fs = std::filesystem;

// Bounds in the files of the authors.
constexpr int64_t kCullPdbSize = 6133;
constexpr int64_t kTrainEnd = 5600;
constexpr int64_t kTestBegin = 5605;
constexpr int64_t kTestEnd = 5877;
constexpr int64_t kFilteredSize = 5534;
constexpr int64_t kFilteredTrainEnd = 5278;

[[noreturn]] void FailToFind(const std::string& what, const fs::path& folder) {
  throw InputError("no " + what + " in '" + folder.string() +
                   "'; expected the data of Zhou and Troyanskaya (2014), "
                   "gzipped or not (generate_pssp makes small files in its "
                   "format)");
}

// Proteins [first, last) of `all` of `size`, the size of the set for which the
// bounds are meant.
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
  throw InputError("'" + file.string() +
                   "' has too few proteins: of the training, validation and "
                   "test set that they are divided into, one is empty; "
                   "expected at least 50");
}

}  // namespace

ProteinSplit SplitCullPdb(const ProteinSet& proteins) {
  return {.train = Slice(proteins, 0, kTrainEnd, kCullPdbSize),
          .validation = Slice(proteins, kTestEnd, kCullPdbSize, kCullPdbSize),
          .test = Slice(proteins, kTestBegin, kTestEnd, kCullPdbSize)};
}

ProteinSplit SplitFilteredCullPdb(const ProteinSet& proteins) {
  return {.train = Slice(proteins, 0, kFilteredTrainEnd, kFilteredSize),
          .validation =
              Slice(proteins, kFilteredTrainEnd, kFilteredSize, kFilteredSize),
          .test = {}};
}

ProteinSplit ReadProteinSplit(const fs::path& data_dir) {
  RequireDataDirectory(data_dir);
  if (const auto file = FindPlainOrGzipped(data_dir, kCullPdbFile)) {
    ProteinSplit split = SplitCullPdb(ReadProteins(*file));
    RequireNoEmptyPart(split, *file);
    return split;
  }
  const auto file = FindPlainOrGzipped(data_dir, kFilteredCullPdbFile);
  if (!file) {
    FailToFind(std::string(kCullPdbFile) + " and no " + kFilteredCullPdbFile,
               data_dir);
  }
  // First the smaller file, so that it is known early if that is missing.
  ProteinSet test = ReadCb513(data_dir);
  ProteinSplit split = SplitFilteredCullPdb(ReadProteins(*file));
  split.test = std::move(test);
  RequireNoEmptyPart(split, *file);
  return split;
}

ProteinSet ReadCb513(const fs::path& data_dir) {
  RequireDataDirectory(data_dir);
  const std::optional<fs::path> file = FindPlainOrGzipped(data_dir, kCb513File);
  if (!file) FailToFind(kCb513File, data_dir);
  return ReadProteins(*file);
}

}  // namespace hvdlite::trainers
