// JPEG, ISO/IEC 10918-1, by libjpeg.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainers/data/formats/image_file.h"

namespace hvdlite::trainers {

// Whether the bytes start as those of a JPEG do.
bool IsJpeg(std::span<const uint8_t> bytes);

// Decodes a baseline or progressive JPEG, grey or in colour. An orientation in
// its Exif data is not applied. Throws InputError, naming `file`, what was
// found and the offset in bytes that decoding had reached, if the data ends
// early, is corrupt, has four inks, or has more than kMaxImagePixels.
RgbImage DecodeJpeg(std::span<const uint8_t> bytes, const std::string& file);

// Encodes with a quality of 1 to 100. The bytes depend on the arguments and the
// version of libjpeg alone. Throws std::runtime_error if libjpeg fails.
std::vector<uint8_t> EncodeJpeg(const RgbImage& image, int quality);

}  // namespace hvdlite::trainers
