#include "trainers/data/formats/mnist.h"

#include <optional>
#include <string>

#include "tools/support/input_error.h"
#include "trainers/data/formats/find_file.h"
#include "trainers/data/formats/idx.h"

namespace hvdlite::trainers {
namespace {

namespace fs = std::filesystem;

constexpr char kFolderOfTheArchive[] = "MNIST/raw";

const IdxItem& Image() {
  static const IdxItem item{.name = "image", .shape = {kDigitSide, kDigitSide}};
  return item;
}

const IdxItem& Label() {
  static const IdxItem item{.name = "label", .shape = {}};
  return item;
}

// train-images-idx3-ubyte, t10k-labels-idx1-ubyte and so on.
std::string FileName(MnistSplit split, const IdxItem& item) {
  return std::string(split == MnistSplit::kTrain ? "train" : "t10k") + "-" +
         item.name + "s-idx" + std::to_string(item.shape.size() + 1) + "-ubyte";
}

fs::path FindMnistFile(const fs::path& data_dir, const std::string& name) {
  for (const fs::path& folder : {data_dir, data_dir / kFolderOfTheArchive}) {
    if (const auto file = FindPlainOrGzipped(folder, name)) return *file;
  }
  throw InputError("no " + name + " and no " + name + ".gz in '" +
                   data_dir.string() + "' nor in its folder " +
                   kFolderOfTheArchive +
                   "; expected the files of MNIST (generate_mnist makes small "
                   "files in its format)");
}

void RequireDigits(const std::vector<uint8_t>& labels, const fs::path& file) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < kDigitClasses) continue;
    throw InputError("label " + std::to_string(labels[i]) + " of image " +
                     std::to_string(i) + " in '" + file.string() +
                     "', at offset " +
                     std::to_string(FirstItemOffsetBytes(Label()) +
                                    static_cast<int64_t>(i)) +
                     "; expected 0 to 9");
  }
}

}  // namespace

DigitSet ReadMnist(const fs::path& data_dir, MnistSplit split) {
  RequireDataDirectory(data_dir);
  const fs::path image_file = FindMnistFile(data_dir, FileName(split, Image()));
  const fs::path label_file = FindMnistFile(data_dir, FileName(split, Label()));
  DigitSet digits{.labels = ReadIdx(label_file, Label()),
                  .pixels = ReadIdx(image_file, Image())};
  RequireDigits(digits.labels, label_file);
  const auto images = static_cast<int64_t>(digits.pixels.size()) / kDigitBytes;
  if (images != digits.size()) {
    throw InputError("'" + image_file.string() + "' has " +
                     std::to_string(images) + " images, '" +
                     label_file.string() + "' " +
                     std::to_string(digits.size()) +
                     " labels (each at offset 4); expected as many labels as "
                     "images");
  }
  if (images == 0) {
    throw InputError("'" + image_file.string() +
                     "' has 0 images, at offset 4; expected at least one");
  }
  return digits;
}

void WriteMnist(const fs::path& folder, MnistSplit split,
                const DigitSet& digits, bool gzipped) {
  const std::string ending = gzipped ? ".gz" : "";
  WriteIdx(folder / (FileName(split, Image()) + ending), Image(),
           digits.pixels);
  WriteIdx(folder / (FileName(split, Label()) + ending), Label(),
           digits.labels);
}

}  // namespace hvdlite::trainers
