// PNG, ISO/IEC 15948, by libpng.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainers/data/formats/rgb_image.h"

namespace hvdlite::trainers {

// Whether the bytes start with PNG's signature.
bool IsPng(std::span<const uint8_t> bytes);

// Decodes a PNG of any colour type to sRGB of eight bits; what is transparent
// shows white. Throws InputError, naming `file` and what was found, if the data
// ends early, is corrupt, or has more than kMaxImagePixels.
RgbImage DecodePng(std::span<const uint8_t> bytes, const std::string& file);

// The bytes depend on the image and the versions of libpng and zlib alone.
// Throws std::runtime_error if libpng fails.
std::vector<uint8_t> EncodePng(const RgbImage& image);

}  // namespace hvdlite::trainers
