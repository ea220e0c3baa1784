// Finds, reads and writes the files of a data set, gzipped or not.
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

// Throws `failure` ("cannot read 'a'") followed by the meaning of `code`. It is
// an InputError if the file itself is wrong: missing, a directory or forbidden.
// Otherwise (an I/O error, an unreachable server, no free descriptor) a retry
// may succeed, so it is a std::runtime_error.
[[noreturn]] void ThrowCannotRead(const std::string& failure,
                                  const std::error_code& code);

// Returns all bytes of a file. Throws as ThrowCannotRead does.
std::vector<uint8_t> ReadWholeFile(const std::filesystem::path& file);

// Reads a gzip file (RFC 1952) decompressed, and any other file unchanged; the
// content decides, not the name. Offsets count uncompressed bytes. Every
// function throws an InputError with file and offset if compressed data is
// corrupt or truncated, and throws as ThrowCannotRead does if the file cannot
// be read.
class ByteReader {
 public:
  explicit ByteReader(const std::filesystem::path& file);

  // The file's name in quotes, for messages.
  const std::string& name() const { return name_; }

  // The number of bytes read so far.
  int64_t offset_bytes() const { return offset_bytes_; }

  // Fills `bytes`. Throws InputError if the file ends early; `what` names the
  // part of the file for the message ("the pixels of image 7").
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

// Writes a gzip file (RFC 1952) if the name ends in .gz, else the bytes
// unchanged. A gzip file has neither name nor time in its header, so the same
// bytes give the same file. Functions throw an InputError that names the file
// if it cannot be written; some errors appear only in Close().
class ByteWriter {
 public:
  explicit ByteWriter(const std::filesystem::path& file);

  void Write(std::span<const std::byte> bytes);

  // Completes the file; call it once at the end. Without it the file is
  // truncated at an arbitrary point, as after an exception.
  void Close();

 private:
  struct Abandon {
    void operator()(gzFile_s* file) const;
  };

  [[noreturn]] void Fail(int error);

  const std::string name_;
  std::unique_ptr<gzFile_s, Abandon> file_;
};

// Returns `directory`/`name` if it exists, else `directory`/`name`.gz if that
// exists, else nothing. Throws as ThrowCannotRead does if the check fails.
std::optional<std::filesystem::path> FindPlainOrGzipped(
    const std::filesystem::path& directory, const std::string& name);

// Throws an InputError with the reason unless `data_dir` is a directory. Throws
// as ThrowCannotRead does if the check fails.
void RequireDataDirectory(const std::filesystem::path& data_dir);

}  // namespace hvdlite::trainers
