#include "trainers/data/formats/byte_reader.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tools/support/input_error.h"

namespace hvdlite::trainers {
namespace {

constexpr unsigned kBufferBytes = 1 << 17;
constexpr size_t kLargestReadBytes = 1 << 30;  // gzread's limit is INT_MAX

}  // namespace

void ByteReader::Close::operator()(gzFile_s* file) const { gzclose_r(file); }

ByteReader::ByteReader(const std::filesystem::path& file)
    : name_("'" + file.string() + "'") {
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    throw InputError("cannot open " + name_ + ": is a directory");
  }
  errno = 0;
  file_.reset(gzopen(file.c_str(), "rb"));
  if (file_ == nullptr) {
    throw InputError("cannot open " + name_ + ": " +
                     std::strerror(errno != 0 ? errno : ENOMEM));
  }
  gzbuffer(file_.get(), kBufferBytes);
}

void ByteReader::ReadExactly(std::span<std::byte> bytes,
                             std::string_view what) {
  const size_t count = Read(bytes);
  if (count < bytes.size()) {
    throw InputError(name_ + " ends at offset " +
                     std::to_string(offset_bytes_) + ", in " +
                     std::string(what) + ": expected " +
                     std::to_string(bytes.size() - count) + " more bytes");
  }
}

void ByteReader::ExpectEnd() {
  const int64_t end_bytes = offset_bytes_;
  std::byte next;
  if (Read({&next, 1}) != 0) {
    throw InputError(name_ + " goes on after its data: expected its end at " +
                     "offset " + std::to_string(end_bytes));
  }
}

size_t ByteReader::Read(std::span<std::byte> bytes) {
  size_t count = 0;
  while (count < bytes.size()) {
    const size_t wanted = std::min(bytes.size() - count, kLargestReadBytes);
    const int read = gzread(file_.get(), bytes.data() + count,
                            static_cast<unsigned>(wanted));
    if (read <= 0) break;
    count += static_cast<size_t>(read);
    offset_bytes_ += read;
  }
  // A gzip file that is cut short is a short read and Z_BUF_ERROR.
  int error = Z_OK;
  const char* const reason = gzerror(file_.get(), &error);
  if (count < bytes.size() && error != Z_OK) {
    throw InputError("cannot read " + name_ + " at offset " +
                     std::to_string(offset_bytes_) + ": " +
                     (error == Z_ERRNO ? std::strerror(errno)
                                       : "its gzip data is corrupt (" +
                                             std::string(reason) + ")"));
  }
  return count;
}

}  // namespace hvdlite::trainers
