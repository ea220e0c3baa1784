#include "trainers/data/formats/byte_writer.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tools/support/input_error.h"

namespace hvdlite::trainers {
namespace {

constexpr unsigned kBufferBytes = 1 << 17;
constexpr size_t kLargestWriteBytes = 1 << 30;  // gzwrite's limit is INT_MAX

}  // namespace

void ByteWriter::Abandon::operator()(gzFile_s* file) const { gzclose_w(file); }

ByteWriter::ByteWriter(const std::filesystem::path& file)
    : name_("'" + file.string() + "'") {
  errno = 0;
  // T: "transparent", without compression.
  file_.reset(gzopen(file.c_str(), file.extension() == ".gz" ? "wb" : "wbT"));
  if (file_ == nullptr) Fail(Z_ERRNO);
  gzbuffer(file_.get(), kBufferBytes);
}

void ByteWriter::Write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), kLargestWriteBytes);
    errno = 0;
    if (gzwrite(file_.get(), bytes.data(), static_cast<unsigned>(count)) == 0) {
      int error = Z_OK;
      gzerror(file_.get(), &error);
      Fail(error);
    }
    bytes = bytes.subspan(count);
  }
}

void ByteWriter::Close() {
  errno = 0;
  const int error = gzclose_w(file_.release());
  if (error != Z_OK) Fail(error);
}

void ByteWriter::Fail(int error) {
  throw InputError(
      "cannot write " + name_ + ": " +
      (error == Z_ERRNO && errno != 0 ? std::strerror(errno) : zError(error)));
}

}  // namespace hvdlite::trainers
