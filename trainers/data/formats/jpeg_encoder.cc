#include <cstdlib>
#include <stdexcept>

#include "trainers/data/formats/jpeg.h"
#include "trainers/data/formats/jpeg_errors.h"

namespace hvdlite::trainers {
namespace {

// What libjpeg allocates for the encoded bytes.
struct EncodedBytes {
  ~EncodedBytes() { free(data); }

  unsigned char* data = nullptr;
  unsigned long size = 0;  // NOLINT(google-runtime-int): libjpeg's type
};

bool Encode(const RgbImage& image, int quality, JpegErrors& errors,
            jpeg_compress_struct& jpeg, EncodedBytes& bytes) {
  jpeg.err = Install(errors);
  if (setjmp(errors.jump) != 0) return false;
  jpeg_create_compress(&jpeg);
  jpeg_mem_dest(&jpeg, &bytes.data, &bytes.size);
  jpeg.image_width = static_cast<JDIMENSION>(image.width);
  jpeg.image_height = static_cast<JDIMENSION>(image.height);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, quality, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    auto* row = const_cast<JSAMPROW>(image.pixels.data()) +
                size_t{3} * jpeg.image_width * jpeg.next_scanline;
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  return true;
}

}  // namespace

std::vector<uint8_t> EncodeJpeg(const RgbImage& image, int quality) {
  JpegErrors errors{};
  jpeg_compress_struct jpeg{};
  EncodedBytes bytes;
  const bool encoded = Encode(image, quality, errors, jpeg, bytes);
  jpeg_destroy_compress(&jpeg);
  if (!encoded) {
    throw std::runtime_error("cannot encode a JPEG: " +
                             std::string(errors.message));
  }
  return {bytes.data, bytes.data + bytes.size};
}

}  // namespace hvdlite::trainers
