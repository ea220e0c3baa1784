// Files of one image each.
#pragma once

#include <filesystem>

#include "trainers/data/formats/rgb_image.h"

namespace hvdlite::trainers {

enum class ImageFormat { kJpeg, kPng };

// Reads a JPEG or PNG; its content, not its name, says which. Throws
// InputError, naming the file, if it cannot be read, is empty, is neither, or
// cannot be decoded (see DecodeJpeg and DecodePng).
RgbImage ReadImageFile(const std::filesystem::path& file);

// Throws InputError if that fails.
void WriteImageFile(const std::filesystem::path& file, const RgbImage& image,
                    ImageFormat format);

}  // namespace hvdlite::trainers
