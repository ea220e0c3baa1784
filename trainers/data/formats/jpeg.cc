#include "trainers/data/formats/jpeg.h"

#include "tools/support/input_error.h"
#include "trainers/data/formats/jpeg_errors.h"

namespace hvdlite::trainers {
namespace {

class Decoder {
 public:
  // Both return false after an error.
  bool ReadHeader(std::span<const uint8_t> bytes);
  bool ReadPixels(uint8_t* pixels);

  ~Decoder() { jpeg_destroy_decompress(&jpeg_); }

  const jpeg_decompress_struct& jpeg() const { return jpeg_; }
  std::string error() const { return errors_.message; }
  size_t bytes_left() const {
    return jpeg_.src == nullptr ? 0 : jpeg_.src->bytes_in_buffer;
  }

 private:
  JpegErrors errors_{};
  jpeg_decompress_struct jpeg_{};
};

bool Decoder::ReadHeader(std::span<const uint8_t> bytes) {
  jpeg_.err = Install(errors_);
  if (setjmp(errors_.jump) != 0) return false;
  jpeg_create_decompress(&jpeg_);
  jpeg_mem_src(&jpeg_, bytes.data(), bytes.size());
  jpeg_read_header(&jpeg_, TRUE);
  return true;
}

bool Decoder::ReadPixels(uint8_t* pixels) {
  if (setjmp(errors_.jump) != 0) return false;
  jpeg_.out_color_space = JCS_RGB;
  jpeg_start_decompress(&jpeg_);
  while (jpeg_.output_scanline < jpeg_.output_height) {
    JSAMPROW row =
        pixels + size_t{3} * jpeg_.output_width * jpeg_.output_scanline;
    jpeg_read_scanlines(&jpeg_, &row, 1);
  }
  jpeg_finish_decompress(&jpeg_);
  return true;
}

}  // namespace

bool IsJpeg(std::span<const uint8_t> bytes) {
  return bytes.size() >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 &&
         bytes[2] == 0xff;
}

RgbImage DecodeJpeg(std::span<const uint8_t> bytes, const std::string& file) {
  Decoder decoder;
  const auto fail = [&](const std::string& found) {
    throw InputError("cannot decode the JPEG '" + file + "': " + found +
                     ", after offset " +
                     std::to_string(bytes.size() - decoder.bytes_left()) +
                     " of " + std::to_string(bytes.size()));
  };
  if (!decoder.ReadHeader(bytes)) fail(decoder.error());
  const jpeg_decompress_struct& jpeg = decoder.jpeg();
  if (jpeg.num_components != 1 && jpeg.num_components != 3) {
    fail(std::to_string(jpeg.num_components) +
         " colour components; expected 1 (grey) or 3");
  }
  RgbImage image{.width = jpeg.image_width, .height = jpeg.image_height};
  if (image.width * image.height > kMaxImagePixels) {
    fail(std::to_string(image.width) + "x" + std::to_string(image.height) +
         " pixels; expected at most " + std::to_string(kMaxImagePixels));
  }
  image.pixels.resize(3 * image.width * image.height);
  if (!decoder.ReadPixels(image.pixels.data())) fail(decoder.error());
  return image;
}

}  // namespace hvdlite::trainers
