#include "trainers/data/formats/data_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/descriptor.h"
#include "support/input_error.h"

namespace hvdlite::trainers {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kBufferBytes = 1 << 17;
constexpr size_t kLargestReadBytes = 1 << 30;   // gzread's limit is INT_MAX
constexpr size_t kLargestWriteBytes = 1 << 30;  // gzwrite's limit is INT_MAX

std::error_code LastError() { return {errno, std::generic_category()}; }

// True if the error is permanent until a user changes the data.
bool IsOfTheFile(const std::error_code& code) {
  for (const std::errc wrong :
       {std::errc::no_such_file_or_directory, std::errc::not_a_directory,
        std::errc::is_a_directory, std::errc::too_many_symbolic_link_levels,
        std::errc::filename_too_long, std::errc::permission_denied}) {
    if (code == wrong) return true;
  }
  return false;
}

}  // namespace

void ThrowCannotRead(const std::string& failure, const std::error_code& code) {
  const std::string message = failure + ": " + code.message();
  if (IsOfTheFile(code)) throw support::InputError(message);
  throw std::runtime_error(message);
}

std::vector<uint8_t> ReadWholeFile(const fs::path& file) {
  const std::string failure = absl::StrCat("cannot read '", file.string(), "'");
  const base::Descriptor descriptor(
      TEMP_FAILURE_RETRY(open(file.c_str(), O_RDONLY | O_CLOEXEC)));
  struct stat status {};
  if (!descriptor.valid() || fstat(descriptor.get(), &status) != 0) {
    ThrowCannotRead(failure, LastError());
  }
  // One byte more than the file, so that the same loop detects its end.
  std::vector<uint8_t> bytes(static_cast<size_t>(status.st_size) + 1);
  size_t count = 0;
  while (true) {
    const ssize_t read_bytes = TEMP_FAILURE_RETRY(
        read(descriptor.get(), &bytes[count], bytes.size() - count));
    if (read_bytes < 0) ThrowCannotRead(failure, LastError());
    if (read_bytes == 0) break;
    count += static_cast<size_t>(read_bytes);
    if (count == bytes.size()) bytes.resize(2 * count + kBufferBytes);
  }
  bytes.resize(count);
  return bytes;
}

void ByteReader::Close::operator()(gzFile_s* file) const { gzclose_r(file); }

ByteReader::ByteReader(const std::filesystem::path& file)
    : name_(absl::StrCat("'", file.string(), "'")) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    throw support::InputError("cannot open " + name_ + ": is a directory");
  }
  errno = 0;
  file_.reset(gzopen(file.c_str(), "rb"));
  if (file_ == nullptr) {
    if (errno == 0) errno = ENOMEM;
    ThrowCannotRead("cannot open " + name_, LastError());
  }
  gzbuffer(file_.get(), kBufferBytes);
}

void ByteReader::ReadExactly(std::span<std::byte> bytes,
                             std::string_view what) {
  const size_t count = Read(bytes);
  if (count < bytes.size()) {
    throw support::InputError(
        name_ + " ends at offset " + std::to_string(offset_bytes_) + ", in " +
        std::string(what) + ": expected " +
        std::to_string(bytes.size() - count) + " more bytes");
  }
}

void ByteReader::ExpectEnd() {
  const int64_t end_bytes = offset_bytes_;
  std::byte next;
  if (Read({&next, 1}) != 0) {
    throw support::InputError(name_ +
                              " has more data than expected: its end should "
                              "be at offset " +
                              std::to_string(end_bytes));
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
  // For a truncated gzip file, gzread() returns few bytes and Z_BUF_ERROR is
  // set.
  int error = Z_OK;
  const char* const reason = gzerror(file_.get(), &error);
  if (count < bytes.size() && error != Z_OK) {
    const std::string failure =
        "cannot read " + name_ + " at offset " + std::to_string(offset_bytes_);
    if (error == Z_ERRNO) ThrowCannotRead(failure, LastError());
    throw support::InputError(failure + ": its gzip data is corrupt (" +
                              std::string(reason) + ")");
  }
  return count;
}

void ByteWriter::Abandon::operator()(gzFile_s* file) const { gzclose_w(file); }

ByteWriter::ByteWriter(const std::filesystem::path& file)
    : name_(absl::StrCat("'", file.string(), "'")) {
  errno = 0;
  // T means "transparent": no compression.
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
  throw support::InputError(
      "cannot write " + name_ + ": " +
      (error == Z_ERRNO && errno != 0 ? std::strerror(errno) : zError(error)));
}

std::optional<fs::path> FindPlainOrGzipped(const fs::path& directory,
                                           const std::string& name) {
  for (const char* const ending : {"", ".gz"}) {
    const fs::path file = directory / (name + ending);
    std::error_code error;
    if (fs::exists(file, error)) return file;
    if (error) ThrowCannotRead("cannot read '" + file.string() + "'", error);
  }
  return std::nullopt;
}

void RequireDataDirectory(const fs::path& data_dir) {
  std::error_code error;
  if (fs::is_directory(data_dir, error)) return;
  ThrowCannotRead(
      "cannot read the data directory '" + data_dir.string() + "'",
      error ? error : std::make_error_code(std::errc::not_a_directory));
}

}  // namespace hvdlite::trainers
