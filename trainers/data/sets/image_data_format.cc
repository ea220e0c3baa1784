#include "trainers/data/sets/image_data_format.h"

#include "tools/support/input_error.h"
#include "trainers/data/formats/cifar10.h"
#include "trainers/data/formats/find_file.h"

namespace hvdlite::trainers {

namespace fs = std::filesystem;

ImageDataFormat DetectImageDataFormat(const fs::path& directory) {
  RequireDataDirectory(directory);
  bool has_folders = false;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
      if (IsPartOfCifar10(entry.path())) return ImageDataFormat::kCifar10;
      has_folders = has_folders || entry.is_directory();
    }
  } catch (const fs::filesystem_error& error) {
    throw InputError("cannot read the data directory '" + directory.string() +
                     "': " + error.code().message());
  }
  if (has_folders) return ImageDataFormat::kFolder;
  throw InputError("'" + directory.string() +
                   "' holds neither CIFAR-10's binary files "
                   "(data_batch_*.bin, test_batch.bin) nor folders of images "
                   "(DOMAIN/CLASS/*.jpg); generate_cifar10 and generate_pacs "
                   "make small ones");
}

}  // namespace hvdlite::trainers
