#include "trainers/data/formats/image_file.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "support/input_error.h"
#include "trainers/data/formats/data_file.h"

namespace hvdlite::trainers {
namespace {

// Uses libpng's simplified interface, whose errors are return values and a
// message.
struct Png {
  Png() { image.version = PNG_IMAGE_VERSION; }
  ~Png() { png_image_free(&image); }

  png_image image{};
};

namespace fs = std::filesystem;

constexpr int kJpegQuality = 95;

std::vector<uint8_t> ReadBytes(const fs::path& file) {
  std::error_code error;
  // A pipe may have no writer, and devices have no end.
  if (fs::is_other(fs::status(file, error))) {
    throw support::InputError("cannot read '" + file.string() +
                              "': not a regular file");
  }
  return ReadWholeFile(file);
}

}  // namespace

bool IsPng(std::span<const uint8_t> bytes) {
  constexpr std::array<uint8_t, 8> kSignature = {0x89, 'P',  'N',  'G',
                                                 '\r', '\n', 0x1a, '\n'};
  return bytes.size() >= kSignature.size() &&
         std::equal(kSignature.begin(), kSignature.end(), bytes.begin());
}

RgbImage DecodePng(std::span<const uint8_t> bytes, const std::string& file) {
  const auto fail = [&](const std::string& found) {
    throw support::InputError("cannot decode the PNG '" + file + "' of " +
                              std::to_string(bytes.size()) +
                              " bytes: " + found);
  };
  Png png;
  if (png_image_begin_read_from_memory(&png.image, bytes.data(),
                                       bytes.size()) == 0) {
    fail(png.image.message);
  }
  // Otherwise libpng assumes linear light for 16 bits without a gAMA or sRGB
  // chunk.
  png.image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  RgbImage image{.width = png.image.width, .height = png.image.height};
  if (image.width * image.height > kMaxImagePixels) {
    fail(std::to_string(image.width) + "x" + std::to_string(image.height) +
         " pixels; expected at most " + std::to_string(kMaxImagePixels));
  }
  image.pixels.resize(3 * image.width * image.height);
  png.image.format = PNG_FORMAT_RGB;
  const png_color white = {.red = 255, .green = 255, .blue = 255};
  if (png_image_finish_read(&png.image, &white, image.pixels.data(),
                            /*row_stride=*/0, /*colormap=*/nullptr) == 0) {
    fail(png.image.message);
  }
  return image;
}

std::vector<uint8_t> EncodePng(const RgbImage& image) {
  Png png;
  png.image.width = static_cast<png_uint_32>(image.width);
  png.image.height = static_cast<png_uint_32>(image.height);
  png.image.format = PNG_FORMAT_RGB;
  png_alloc_size_t size_bytes = PNG_IMAGE_PNG_SIZE_MAX(png.image);
  std::vector<uint8_t> bytes(size_bytes);
  if (png_image_write_to_memory(&png.image, bytes.data(), &size_bytes,
                                /*convert_to_8_bit=*/0, image.pixels.data(),
                                /*row_stride=*/0,
                                /*colormap=*/nullptr) == 0) {
    throw std::runtime_error("cannot encode a PNG: " +
                             std::string(png.image.message));
  }
  bytes.resize(size_bytes);
  return bytes;
}

RgbImage ReadImageFile(const fs::path& file) {
  const std::vector<uint8_t> bytes = ReadBytes(file);
  if (IsJpeg(bytes)) return DecodeJpeg(bytes, file.string());
  if (IsPng(bytes)) return DecodePng(bytes, file.string());
  throw support::InputError("'" + file.string() + "' is not an image: its " +
                            std::to_string(bytes.size()) +
                            " bytes start neither as a JPEG nor as a "
                            "PNG, at offset 0");
}

void WriteImageFile(const fs::path& file, const RgbImage& image,
                    ImageFormat format) {
  const std::vector<uint8_t> bytes = format == ImageFormat::kJpeg
                                         ? EncodeJpeg(image, kJpegQuality)
                                         : EncodePng(image);
  std::ofstream stream(file, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  stream.close();
  if (!stream) {
    throw support::InputError("cannot write '" + file.string() +
                              "': " + std::strerror(errno));
  }
}

}  // namespace hvdlite::trainers
