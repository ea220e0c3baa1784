#include "trainers/data/formats/image_file.h"

// jpeglib.h needs declarations of stdio.h.
// clang-format off
#include <setjmp.h>
#include <stdio.h>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <cstdlib>
#include <stdexcept>

#include "support/input_error.h"

namespace hvdlite::trainers {
namespace {

// The handler of libjpeg's errors, which must not return. It jumps to the
// setjmp of the function that called libjpeg. All frames between them are
// libjpeg's, so no destructor is skipped.
struct JpegErrors {
  jpeg_error_mgr manager;  // the first member, so that both addresses are equal
  jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = "";
};

[[noreturn]] void Fail(j_common_ptr jpeg) {
  auto* errors = reinterpret_cast<JpegErrors*>(jpeg->err);
  errors->manager.format_message(jpeg, errors->message);
  longjmp(errors->jump, 1);
}

bool LosesPixels(int warning) {
  return warning == JWRN_JPEG_EOF || warning == JWRN_HIT_MARKER ||
         warning == JWRN_HUFF_BAD_CODE || warning == JWRN_MUST_RESYNC;
}

void OnMessage(j_common_ptr jpeg, int level) {
  if (level < 0 && LosesPixels(jpeg->err->msg_code)) Fail(jpeg);
}

// Prepares `errors` for the `err` of a libjpeg structure. Warnings about
// invented pixels count as errors; other warnings are ignored.
jpeg_error_mgr* Install(JpegErrors& errors) {
  jpeg_std_error(&errors.manager);
  errors.manager.error_exit = Fail;
  errors.manager.emit_message = OnMessage;
  return &errors.manager;
}

constexpr int kInks = 4;  // cyan, magenta, yellow and black

// Converts a row. A sample is the light that an ink leaves, not the amount of
// ink.
void ConvertInks(const std::vector<JSAMPLE>& inks, uint8_t* pixels) {
  for (size_t i = 0; i + kInks <= inks.size(); i += kInks) {
    for (size_t ink = 0; ink < 3; ++ink) {
      const int both = inks[i + ink] * inks[i + 3];
      *pixels++ = static_cast<uint8_t>((both + 127) / 255);
    }
  }
}

class Decoder {
 public:
  // Both return false on errors.
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
  std::vector<JSAMPLE> inks_;  // one row; empty without inks
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
  if (jpeg_.num_components == kInks) inks_.resize(kInks * jpeg_.image_width);
  if (setjmp(errors_.jump) != 0) return false;
  jpeg_.out_color_space = inks_.empty() ? JCS_RGB : JCS_CMYK;
  jpeg_start_decompress(&jpeg_);
  while (jpeg_.output_scanline < jpeg_.output_height) {
    uint8_t* row_pixels =
        pixels + size_t{3} * jpeg_.output_width * jpeg_.output_scanline;
    JSAMPROW row = inks_.empty() ? row_pixels : inks_.data();
    jpeg_read_scanlines(&jpeg_, &row, 1);
    if (!inks_.empty()) ConvertInks(inks_, row_pixels);
  }
  jpeg_finish_decompress(&jpeg_);
  return true;
}

// Owns the encoded bytes, which libjpeg allocates.
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

bool IsJpeg(std::span<const uint8_t> bytes) {
  return bytes.size() >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 &&
         bytes[2] == 0xff;
}

RgbImage DecodeJpeg(std::span<const uint8_t> bytes, const std::string& file) {
  Decoder decoder;
  const auto fail = [&](const std::string& found) {
    throw support::InputError(
        "cannot decode the JPEG '" + file + "': " + found + ", after offset " +
        std::to_string(bytes.size() - decoder.bytes_left()) + " of " +
        std::to_string(bytes.size()));
  };
  if (!decoder.ReadHeader(bytes)) fail(decoder.error());
  const jpeg_decompress_struct& jpeg = decoder.jpeg();
  if (jpeg.num_components != 1 && jpeg.num_components != 3 &&
      jpeg.num_components != kInks) {
    fail(std::to_string(jpeg.num_components) +
         " colour components; expected 1 (grey), 3 or 4 (inks)");
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
