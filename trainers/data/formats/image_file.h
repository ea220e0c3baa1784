// Decodes and encodes PNG (ISO/IEC 15948, with libpng) and JPEG (ISO/IEC
// 10918-1, with libjpeg), and reads and writes files of one image each.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace hvdlite::trainers {

// An image: rows from top to bottom, pixels from left to right, one byte each
// of red, green and blue.
struct RgbImage {
  int64_t width = 0;
  int64_t height = 0;
  std::vector<uint8_t> pixels = {};  // 3 * width * height

  bool operator==(const RgbImage&) const = default;
};

// The limit for the size of an image, checked before memory is allocated, since
// a damaged or malicious header may state any size.
inline constexpr int64_t kMaxImagePixels = int64_t{1} << 26;

// True if the bytes start with PNG's signature.
bool IsPng(std::span<const uint8_t> bytes);

// Decodes a PNG of any colour type to sRGB with eight bits. Transparent pixels
// become white. Samples are sRGB unless a gAMA chunk specifies otherwise.
// Throws an InputError that names `file` and the problem if the data ends
// early, is corrupt, or has more than kMaxImagePixels.
RgbImage DecodePng(std::span<const uint8_t> bytes, const std::string& file);

// Encodes a PNG. The bytes depend only on the image and the versions of libpng
// and zlib. Throws std::runtime_error if libpng fails.
std::vector<uint8_t> EncodePng(const RgbImage& image);

// True if the bytes start as those of a JPEG do.
bool IsJpeg(std::span<const uint8_t> bytes);

// Decodes a baseline or progressive JPEG: grey, colour, or four inks (CMYK and
// YCCK). Inks are read as Adobe stores them, inverted, with or without its
// marker, like in torchvision. Colour profiles and the orientation of Exif data
// are ignored. Throws an InputError that names `file`, the problem and the
// offset in bytes that decoding reached if the data ends early, is corrupt, or
// has more than kMaxImagePixels.
RgbImage DecodeJpeg(std::span<const uint8_t> bytes, const std::string& file);

// Encodes a JPEG with a quality of 1 to 100. The bytes depend only on the
// arguments and the version of libjpeg. Throws std::runtime_error if libjpeg
// fails.
std::vector<uint8_t> EncodeJpeg(const RgbImage& image, int quality);

enum class ImageFormat { kJpeg, kPng };

// Reads a JPEG or PNG; the content decides, not the name. Throws an InputError
// that names the file if it is empty, has another format, or cannot be decoded
// (see DecodeJpeg and DecodePng). Throws as ThrowCannotRead does if it cannot
// be read.
RgbImage ReadImageFile(const std::filesystem::path& file);

// Writes the file. Throws InputError on failure.
void WriteImageFile(const std::filesystem::path& file, const RgbImage& image,
                    ImageFormat format);

}  // namespace hvdlite::trainers
