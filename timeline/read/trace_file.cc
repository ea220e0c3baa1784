#include "timeline/read/trace_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#define ZLIB_CONST  // makes the input of zlib const
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/new_file.h"
#include "base/status_macros.h"
#include "timeline/record/trace_format.h"

namespace hvdlite::timeline {
namespace {

constexpr size_t kBlockBytes = size_t{256} << 10;
constexpr absl::string_view kGzipMagic = "\x1f\x8b";

// gzip packs traces to a tenth to a fortieth of their size.
constexpr size_t kMostGrowth = 200;
constexpr size_t kAlwaysAllowedBytes = size_t{64} << 20;

// Asks for huge pages for what `bytes` has reserved: with small pages, a trace
// of 167 MB costs 41,000 page faults.
void AskForLargePages(const std::string& bytes) {
  constexpr uintptr_t kPageBytes = uintptr_t{2} << 20;
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t end = (begin + bytes.capacity()) / kPageBytes * kPageBytes;
  const uintptr_t first = (begin + kPageBytes - 1) / kPageBytes * kPageBytes;
  if (first >= end) return;
  (void)madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

absl::StatusOr<std::string> ReadBytes(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is a directory, not a trace file"));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  }
  std::string bytes;
  const auto size_bytes = std::filesystem::file_size(path, error);
  if (!error) {
    bytes.reserve(size_bytes + kBlockBytes);
    AskForLargePages(bytes);
  }
  while (file) {
    const size_t size = bytes.size();
    bytes.resize(size + kBlockBytes);
    file.read(&bytes[size], kBlockBytes);
    bytes.resize(size + static_cast<size_t>(file.gcount()));
  }
  if (file.bad())
    return absl::DataLossError(absl::StrCat("cannot read ", path));
  return bytes;
}

// Unpacks all members of a gzip file.
class Unpacker {
 public:
  explicit Unpacker(absl::string_view packed)
      : most_bytes_(std::max(kAlwaysAllowedBytes, packed.size() * kMostGrowth)),
        rest_(packed) {
    stream_.zalloc = nullptr;
    stream_.zfree = nullptr;
    stream_.opaque = nullptr;
    // 15 is the largest window; adding 16 expects a gzip header.
    ready_ = inflateInit2(&stream_, 15 + 16) == Z_OK;
  }
  ~Unpacker() {
    if (ready_) inflateEnd(&stream_);
  }
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  // If false, see problem() and grew_too_much(); `text` has what was unpacked.
  bool Run(std::string* text) {
    while (ready_ && absl::StartsWith(rest_, kGzipMagic)) {
      if (!UnpackMember(text)) return false;
      inflateReset(&stream_);
    }
    if (!ready_) problem_ = "there is no memory to unpack it";
    // Padding is not damage.
    if (ready_ && rest_.find_first_not_of('\0') != absl::string_view::npos) {
      problem_ = "the data after its gzip stream is ignored";
    }
    return problem_.empty();
  }

  const std::string& problem() const { return problem_; }
  bool grew_too_much() const { return grew_too_much_; }

 private:
  bool UnpackMember(std::string* text) {
    int result = Z_OK;
    while (result != Z_STREAM_END) {
      const size_t size = text->size();
      // The string doubles its memory.
      if (text->capacity() < size + kBlockBytes) {
        text->reserve(2 * size + kBlockBytes);
      }
      text->resize(size + kBlockBytes);
      const auto given =
          static_cast<uInt>(std::min(rest_.size(), size_t{1} << 30));
      stream_.next_in = reinterpret_cast<const Bytef*>(rest_.data());
      stream_.avail_in = given;
      stream_.next_out = reinterpret_cast<Bytef*>(&(*text)[size]);
      stream_.avail_out = static_cast<uInt>(kBlockBytes);
      result = inflate(&stream_, Z_NO_FLUSH);
      text->resize(size + kBlockBytes - stream_.avail_out);
      rest_.remove_prefix(given - stream_.avail_in);
      if (text->size() > most_bytes_) {
        grew_too_much_ = true;
        return false;
      }
      if (result == Z_BUF_ERROR ||
          (result == Z_OK && rest_.empty() && stream_.avail_out > 0)) {
        problem_ = "cut off: its gzip stream has no end";
        return false;
      }
      if (result != Z_OK && result != Z_STREAM_END) {
        problem_ = absl::StrCat(
            "its gzip stream is damaged",
            stream_.msg == nullptr ? "" : absl::StrCat(" (", stream_.msg, ")"),
            ": the rest is lost");
        return false;
      }
    }
    return true;
  }

  const size_t most_bytes_;
  absl::string_view rest_;
  z_stream stream_ = {};
  bool ready_ = false;
  bool grew_too_much_ = false;
  std::string problem_;
};

}  // namespace

// A file, and gzip's state for the bytes that go into it.
struct OutputFile::Stream {
  explicit Stream(base::NewFile opened) : file(std::move(opened)) {}

  base::NewFile file;
  bool packs = false;
  z_stream packer = {};

  ~Stream() {
    if (packs) deflateEnd(&packer);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  absl::Status Write(absl::string_view bytes, bool is_last) {
    if (!packs) return file.Write(bytes);
    std::string packed(kBlockBytes, '\0');
    do {
      const size_t given = std::min(bytes.size(), size_t{1} << 30);
      packer.next_in = reinterpret_cast<const Bytef*>(bytes.data());
      packer.avail_in = static_cast<uInt>(given);
      do {
        packer.next_out = reinterpret_cast<Bytef*>(packed.data());
        packer.avail_out = static_cast<uInt>(packed.size());
        deflate(&packer,
                is_last && given == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
        const size_t size = packed.size() - packer.avail_out;
        HVDLITE_RETURN_IF_ERROR(
            file.Write(absl::string_view(packed.data(), size)));
      } while (packer.avail_out == 0);
      bytes.remove_prefix(given);
    } while (!bytes.empty());
    return absl::OkStatus();
  }
};

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Open(
    const std::string& path) {
  HVDLITE_ASSIGN_OR_RETURN(base::NewFile file, base::NewFile::Open(path));
  auto stream = std::make_unique<Stream>(std::move(file));
  if (absl::EndsWith(path, ".gz")) {
    stream->packs =
        deflateInit2(&stream->packer, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                     15 + 16, /*memLevel=*/8, Z_DEFAULT_STRATEGY) == Z_OK;
    if (!stream->packs) {
      return absl::ErrnoToStatus(ENOMEM, absl::StrCat("cannot write ", path));
    }
  }
  return std::unique_ptr<OutputFile>(new OutputFile(std::move(stream)));
}

OutputFile::OutputFile(std::unique_ptr<Stream> stream)
    : stream_(std::move(stream)) {}

OutputFile::~OutputFile() = default;

absl::Status OutputFile::Append(absl::string_view bytes) {
  return stream_->Write(bytes, /*is_last=*/false);
}

absl::Status OutputFile::Commit() {
  if (stream_->packs) {
    HVDLITE_RETURN_IF_ERROR(stream_->Write("", /*is_last=*/true));
  }
  return stream_->file.Commit();
}

absl::StatusOr<TraceText> ReadTraceText(const std::string& path) {
  TraceText trace;
  HVDLITE_ASSIGN_OR_RETURN(std::string bytes, ReadBytes(path));
  if (!absl::StartsWith(bytes, kGzipMagic)) {
    trace.text = std::move(bytes);
    return trace;
  }
  Unpacker unpacker(bytes);
  if (unpacker.Run(&trace.text)) return trace;
  if (unpacker.grew_too_much()) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, " is not a trace: gzip unpacks its ", bytes.size(),
                     " bytes to more than ", trace.text.size(),
                     "; if it is a trace, unpack it first (gzip -d)"));
  }
  trace.warning = absl::StrCat(path, ": ", unpacker.problem());
  return trace;
}

absl::StatusOr<std::vector<std::string>> FindTraceFiles(
    const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error)) return std::vector{path};
  std::vector<std::string> files;
  for (const auto& [rank, part] : FindTraceParts(path)) files.push_back(part);
  if (!files.empty()) return files;
  return absl::NotFoundError(absl::StrCat("there is no file ", path,
                                          ", and no per-rank trace file (",
                                          path, ".rank00000, ...)"));
}

}  // namespace hvdlite::timeline
