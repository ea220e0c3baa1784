// Which kind of image data a directory holds.
#pragma once

#include <filesystem>

namespace hvdlite::trainers {

enum class ImageDataFormat { kCifar10, kFolder };

// CIFAR-10 if `directory` has its binary files or its folder
// cifar-10-batches-bin, otherwise folders of images. Throws InputError, saying
// what is expected, if the directory cannot be read or has no folders either.
ImageDataFormat DetectImageDataFormat(const std::filesystem::path& directory);

}  // namespace hvdlite::trainers
