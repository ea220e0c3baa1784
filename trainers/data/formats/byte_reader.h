// Sequential reading of a file that may be compressed with gzip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct gzFile_s;  // zlib's

namespace hvdlite::trainers {

// Reads a gzip file (RFC 1952) as what it holds, and any other file as it is;
// the content decides, not the name. Offsets count uncompressed bytes. Every
// function throws InputError, with file and offset, if the file cannot be read
// or its compressed data is corrupt or cut short.
class ByteReader {
 public:
  explicit ByteReader(const std::filesystem::path& file);

  // The file's name in quotes, for messages.
  const std::string& name() const { return name_; }

  // How many bytes have been read.
  int64_t offset_bytes() const { return offset_bytes_; }

  // Fills `bytes`. Throws InputError if the file ends before; `what` says what
  // was being read ("the pixels of image 7").
  void ReadExactly(std::span<std::byte> bytes, std::string_view what);

  // Throws InputError unless all bytes have been read.
  void ExpectEnd();

 private:
  struct Close {
    void operator()(gzFile_s* file) const;
  };

  // Reads up to `bytes.size()` bytes, fewer only at the end of the file.
  size_t Read(std::span<std::byte> bytes);

  const std::string name_;
  int64_t offset_bytes_ = 0;
  std::unique_ptr<gzFile_s, Close> file_;
};

}  // namespace hvdlite::trainers
