#include "base/checkpoint_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/descriptor.h"
#include "base/new_file.h"
#include "base/status_macros.h"

namespace hvdlite::base {
namespace {

constexpr char kMagic[8] = {'h', 'v', 'd', 'l', 'i', 't', 'e', '\n'};
constexpr uint32_t kFormatVersion = 1;
constexpr char kPlainArchive[4] = {'P', 'K', '\x03', '\x04'};  // of a ZIP file

// The beginning of a file. The content follows it and fills the rest.
struct Header {
  char magic[8] = {};
  uint32_t version = 0;
  uint32_t checksum = 0;  // CRC-32 of version, content_bytes and content
  uint64_t content_bytes = 0;
};
static_assert(sizeof(Header) == 24);
static_assert(std::endian::native == std::endian::little,
              "files hold the header as it is in memory");

uint32_t ChecksumOf(const Header& header, absl::string_view content) {
  const auto add = [](uLong sum, const void* data, size_t size) {
    return crc32_z(sum, static_cast<const Bytef*>(data), size);
  };
  uLong sum = add(0, &header.version, sizeof(header.version));
  sum = add(sum, &header.content_bytes, sizeof(header.content_bytes));
  return static_cast<uint32_t>(add(sum, content.data(), content.size()));
}

absl::Status NotWritten(const std::string& path, const std::string& reason) {
  return absl::UnknownError(
      absl::StrCat("cannot write the checkpoint '", path, "': ", reason));
}

absl::Status Fill(const TemporaryFile& file, const std::string& path,
                  absl::string_view content) {
  Header header = {.version = kFormatVersion, .content_bytes = content.size()};
  std::copy(std::begin(kMagic), std::end(kMagic), header.magic);
  header.checksum = ChecksumOf(header, content);
  int error =
      WriteAll(file.descriptor(),
               {reinterpret_cast<const char*>(&header), sizeof(header)});
  if (error == 0) error = WriteAll(file.descriptor(), content);
  if (error == 0 && fsync(file.descriptor()) != 0) error = errno;
  if (error != 0) return NotWritten(path, std::strerror(error));
  return absl::OkStatus();
}

// Renames `file` to `path`. The file that had this name becomes the previous
// generation, and that happens last: at any moment one of the two is whole,
// even if the newest was damaged.
absl::Status Install(TemporaryFile& file, const std::string& path,
                     bool keep_previous) {
  const std::string previous = PreviousGeneration(path);
  const std::string second_name = absl::StrCat(file.name(), ".previous");
  bool linked = false;
  if (keep_previous) {
    linked = link(path.c_str(), second_name.c_str()) == 0;
    if (!linked && errno != ENOENT &&
        std::rename(path.c_str(), previous.c_str()) != 0 && errno != ENOENT) {
      return NotWritten(path, absl::StrCat("cannot rename it to '", previous,
                                           "': ", std::strerror(errno)));
    }
  }
  if (!file.Rename(path) || !SyncDirectory(path)) {
    const int error = errno;
    if (linked) unlink(second_name.c_str());
    return NotWritten(path, std::strerror(error));
  }
  if (!linked) return absl::OkStatus();
  // Another process that saves to `path` may have removed it as a leftover.
  const bool renamed =
      std::rename(second_name.c_str(), previous.c_str()) == 0 ||
      errno == ENOENT;
  const int error = errno;
  // rename() does nothing if both names are links to one file.
  unlink(second_name.c_str());
  if (renamed && SyncDirectory(path)) return absl::OkStatus();
  return NotWritten(previous, std::strerror(renamed ? errno : error));
}

absl::Status NotRead(const std::string& file, const std::string& what) {
  return absl::DataLossError(
      absl::StrCat("the checkpoint '", file, "' ", what));
}

}  // namespace

std::string PreviousGeneration(const std::string& path) {
  return path + ".previous";
}

absl::Status WriteCheckpointFile(const std::string& path,
                                 absl::string_view content,
                                 bool keep_previous) {
  std::error_code error;
  if (std::filesystem::exists(path, error) &&
      !std::filesystem::is_regular_file(path, error)) {
    return NotWritten(path, "is not a regular file");
  }
  TemporaryFile file(path);
  if (!file.valid()) return NotWritten(path, std::strerror(errno));
  HVDLITE_RETURN_IF_ERROR(Fill(file, path, content));
  return Install(file, path, keep_previous);
}

absl::StatusOr<std::string> ReadCheckpointFile(const std::string& file) {
  const Descriptor descriptor(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat about = {};
  if (!descriptor.valid() && errno == ENOENT) {
    return absl::NotFoundError(absl::StrCat("there is no checkpoint '", file,
                                            "': ", std::strerror(errno)));
  }
  if (!descriptor.valid() || fstat(descriptor.get(), &about) != 0) {
    return NotRead(file,
                   absl::StrCat("cannot be read: ", std::strerror(errno)));
  }
  if (!S_ISREG(about.st_mode)) return NotRead(file, "is not a regular file");
  const auto bytes = static_cast<uint64_t>(about.st_size);
  if (bytes == 0) return NotRead(file, "is empty");

  uint64_t offset = 0;
  // The next `size` bytes; false with errno set, 0 at the file's end.
  const auto read_all = [&](char* data, uint64_t size) {
    while (size > 0) {
      const ssize_t read =
          pread(descriptor.get(), data, size, static_cast<off_t>(offset));
      if (read < 0 && errno == EINTR) continue;
      if (read == 0) errno = 0;
      if (read <= 0) return false;
      data += read;
      offset += static_cast<uint64_t>(read);
      size -= static_cast<uint64_t>(read);
    }
    return true;
  };
  const auto not_read = [&] {
    return NotRead(
        file, errno == 0
                  ? std::string("was truncated while it was read")
                  : absl::StrCat("cannot be read: ", std::strerror(errno)));
  };

  Header header;
  if (!read_all(reinterpret_cast<char*>(&header),
                std::min<uint64_t>(bytes, sizeof(header)))) {
    return not_read();
  }
  const bool plain =
      std::memcmp(&header, kPlainArchive, sizeof(kPlainArchive)) == 0;
  if (plain) {
    offset = 0;
  } else if (std::memcmp(header.magic, kMagic,
                         std::min<uint64_t>(bytes, sizeof(kMagic))) != 0) {
    return NotRead(file, "is not a checkpoint, or its header is damaged");
  } else if (bytes < sizeof(header)) {
    return NotRead(file, "is truncated: its header is incomplete");
  } else if (header.version != kFormatVersion) {
    return NotRead(
        file, absl::StrCat("has format version ", header.version,
                           "; this program reads version ", kFormatVersion));
  } else if (header.content_bytes != bytes - sizeof(header)) {
    return NotRead(
        file, absl::StrCat("is damaged: it has ", bytes, " bytes instead of ",
                           header.content_bytes, " + ", sizeof(header)));
  }
  std::string content(bytes - offset, '\0');
  if (!read_all(content.data(), content.size())) return not_read();
  if (!plain && ChecksumOf(header, content) != header.checksum) {
    return NotRead(file, "is damaged: its checksum does not match its content");
  }
  return content;
}

}  // namespace hvdlite::base
