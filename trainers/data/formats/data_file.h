// Finding, reading and writing the files of a data set, gzipped or not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

struct gzFile_s;  // zlib's

namespace hvdlite::trainers {

// Throws `failure` ("cannot read 'a'") with what `code` means. An InputError if
// it is the file that is wrong: it is missing, a directory or forbidden. Else
// (an I/O error, a server that is away, no descriptor left) another try may
// succeed: std::runtime_error.
[[noreturn]] void ThrowCannotRead(const std::string& failure,
                                  const std::error_code& code);

// All bytes of a file. Throws as ThrowCannotRead does.
std::vector<uint8_t> ReadWholeFile(const std::filesystem::path& file);

// Reads a gzip file (RFC 1952) as what it holds, and any other file as it is;
// the content decides, not the name. Offsets count uncompressed bytes. Every
// function throws InputError, with file and offset, if its compressed data is
// corrupt or cut short, and as ThrowCannotRead does if it cannot be read.
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

// `folder`/`name`, or else `folder`/`name`.gz, whichever exists; or nothing.
// Throws as ThrowCannotRead does if that cannot be told.
std::optional<std::filesystem::path> FindPlainOrGzipped(
    const std::filesystem::path& folder, const std::string& name);

// Throws InputError that says why, unless `data_dir` is a directory, and as
// ThrowCannotRead does if that cannot be told.
void RequireDataDirectory(const std::filesystem::path& data_dir);

}  // namespace hvdlite::trainers
