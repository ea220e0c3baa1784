#include "trainers/data/formats/image_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "tools/support/input_error.h"
#include "trainers/data/formats/jpeg.h"
#include "trainers/data/formats/png.h"

namespace hvdlite::trainers {
namespace {

namespace fs = std::filesystem;

constexpr int kJpegQuality = 95;

std::vector<uint8_t> ReadBytes(const fs::path& file) {
  std::error_code error;
  const uintmax_t size_bytes = fs::file_size(file, error);
  if (error) {
    throw InputError("cannot read '" + file.string() + "': " + error.message());
  }
  std::vector<uint8_t> bytes(size_bytes);
  std::ifstream stream(file, std::ios::binary);
  if (!stream.read(reinterpret_cast<char*>(bytes.data()),
                   static_cast<std::streamsize>(size_bytes))) {
    throw InputError("cannot read '" + file.string() +
                     "': " + std::strerror(errno));
  }
  return bytes;
}

}  // namespace

RgbImage ReadImageFile(const fs::path& file) {
  const std::vector<uint8_t> bytes = ReadBytes(file);
  if (IsJpeg(bytes)) return DecodeJpeg(bytes, file.string());
  if (IsPng(bytes)) return DecodePng(bytes, file.string());
  throw InputError("'" + file.string() + "' is no image: its " +
                   std::to_string(bytes.size()) +
                   " bytes do not start, at offset 0, as those of a JPEG or "
                   "PNG do");
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
    throw InputError("cannot write '" + file.string() +
                     "': " + std::strerror(errno));
  }
}

}  // namespace hvdlite::trainers
