// Sequential writing of a file, compressed with gzip if its name says so.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

struct gzFile_s;  // zlib's

namespace hvdlite::trainers {

// Writes a gzip file (RFC 1952) where the name ends in .gz, and the bytes as
// they are otherwise. A gzip file has neither name nor time in its header: the
// same bytes make the same file. Functions throw InputError, which names the
// file, if it cannot be written; what is lost may be noticed by Close only.
class ByteWriter {
 public:
  explicit ByteWriter(const std::filesystem::path& file);

  void Write(std::span<const std::byte> bytes);

  // Completes the file; to be called once, last. Without it the file is cut
  // short at an arbitrary point, as after an exception.
  void Close();

 private:
  struct Abandon {
    void operator()(gzFile_s* file) const;
  };

  [[noreturn]] void Fail(int error);

  const std::string name_;
  std::unique_ptr<gzFile_s, Abandon> file_;
};

}  // namespace hvdlite::trainers
