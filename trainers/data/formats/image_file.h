// Images as decoders give them, PNG (ISO/IEC 15948, by libpng), JPEG (ISO/IEC
// 10918-1, by libjpeg), and files of one image each.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace hvdlite::trainers {

// Rows from top to bottom, of pixels from left to right, of a byte each of red,
// green and blue.
struct RgbImage {
  int64_t width = 0;
  int64_t height = 0;
  std::vector<uint8_t> pixels = {};  // 3 * width * height

  bool operator==(const RgbImage&) const = default;
};

// Larger images are refused before memory is asked for: a damaged or malicious
// header may claim any size.
inline constexpr int64_t kMaxImagePixels = int64_t{1} << 26;

// Whether the bytes start with PNG's signature.
bool IsPng(std::span<const uint8_t> bytes);

// Decodes a PNG of any colour type to sRGB of eight bits; what is transparent
// shows white, and samples are sRGB's unless a gAMA chunk says otherwise.
// Throws InputError, naming `file` and what was found, if the data ends early,
// is corrupt, or has more than kMaxImagePixels.
RgbImage DecodePng(std::span<const uint8_t> bytes, const std::string& file);

// The bytes depend on the image and the versions of libpng and zlib alone.
// Throws std::runtime_error if libpng fails.
std::vector<uint8_t> EncodePng(const RgbImage& image);

// Whether the bytes start as those of a JPEG do.
bool IsJpeg(std::span<const uint8_t> bytes);

// Decodes a baseline or progressive JPEG: grey, in colour, or of four inks
// (CMYK and YCCK), which are taken as Adobe stores them, inverted, with or
// without its marker: as torchvision reads them. Colour profiles, and an
// orientation in its Exif data, are not applied. Throws InputError, naming
// `file`, what was found and the offset in bytes that decoding had reached, if
// the data ends early, is corrupt, or has more than kMaxImagePixels.
RgbImage DecodeJpeg(std::span<const uint8_t> bytes, const std::string& file);

// Encodes with a quality of 1 to 100. The bytes depend on the arguments and the
// version of libjpeg alone. Throws std::runtime_error if libjpeg fails.
std::vector<uint8_t> EncodeJpeg(const RgbImage& image, int quality);

enum class ImageFormat { kJpeg, kPng };

// Reads a JPEG or PNG; its content, not its name, says which. Throws
// InputError, naming the file, if it is empty, neither, or cannot be decoded
// (see DecodeJpeg and DecodePng), and as ThrowCannotRead does if it cannot be
// read.
RgbImage ReadImageFile(const std::filesystem::path& file);

// Throws InputError if that fails.
void WriteImageFile(const std::filesystem::path& file, const RgbImage& image,
                    ImageFormat format);

}  // namespace hvdlite::trainers
