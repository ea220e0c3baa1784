#include "base/new_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/environment.h"
#include "base/status_macros.h"

namespace hvdlite::base {
namespace {

std::filesystem::path DirectoryOf(const std::string& path) {
  const std::filesystem::path directory =
      std::filesystem::path(path).parent_path();
  return directory.empty() ? "." : directory;
}

// Prefix of this host's temporary files for `path`. The process id and more
// follow. The writer of such a file holds its lock.
std::string TemporaryPrefix(const std::string& path) {
  return absl::StrCat(path, ".tmp.", HostName(), ".");
}

// Removes the temporary file if it has no writer any more. Where the file
// system has no locks, its process must have ended.
void RemoveIfLeftOver(const std::string& file, absl::string_view owner) {
  int process = 0;
  if (!absl::SimpleAtoi(owner.substr(0, owner.find('.')), &process)) return;
  // The lock is held until the name is gone. A new writer of this name notices
  // the lock and takes another name.
  const Descriptor descriptor(open(file.c_str(), O_RDWR | O_CLOEXEC));
  if (!descriptor.valid()) return;
  const bool left_over =
      flock(descriptor.get(), LOCK_EX | LOCK_NB) == 0 ||
      (errno != EWOULDBLOCK && kill(process, 0) != 0 && errno == ESRCH);
  // Its writer may have finished and begun a new file since it was opened.
  struct stat opened = {};
  struct stat named = {};
  if (left_over && fstat(descriptor.get(), &opened) == 0 &&
      stat(file.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
      opened.st_ino == named.st_ino) {
    unlink(file.c_str());
  }
}

void RemoveLeftOvers(const std::string& path) {
  const std::string prefix = TemporaryPrefix(path);
  const std::string name = std::filesystem::path(prefix).filename();
  std::error_code error;
  for (std::filesystem::directory_iterator files(DirectoryOf(path), error), end;
       !error && files != end; files.increment(error)) {
    const std::string found = files->path().filename();
    absl::string_view owner = found;
    if (absl::ConsumePrefix(&owner, name))
      RemoveIfLeftOver(files->path(), owner);
  }
}

// The descriptor of this process that `path` names; -1: none.
int DescriptorNamed(absl::string_view path) {
  if (path == "-" || path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  int number = -1;
  const bool is_named = absl::ConsumePrefix(&path, "/dev/fd/") ||
                        absl::ConsumePrefix(&path, "/proc/self/fd/");
  return is_named && absl::SimpleAtoi(path, &number) ? number : -1;
}

}  // namespace

bool IsStream(const std::string& path) {
  struct stat about = {};
  return DescriptorNamed(path) >= 0 ||
         (stat(path.c_str(), &about) == 0 &&
          (S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode)));
}

bool IsSameFile(const std::string& a, const std::string& b) {
  struct stat first = {};
  struct stat second = {};
  const bool first_exists = stat(a.c_str(), &first) == 0;
  const bool second_exists = stat(b.c_str(), &second) == 0;
  if (first_exists && second_exists) {
    return first.st_dev == second.st_dev && first.st_ino == second.st_ino;
  }
  if (first_exists || second_exists) return false;
  const auto whole = [](const std::string& path) {
    std::error_code error;
    return std::filesystem::weakly_canonical(
        std::filesystem::absolute(path, error), error);
  };
  return whole(a) == whole(b);
}

bool SyncDirectory(const std::string& path) {
  const Descriptor directory(
      open(DirectoryOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return directory.valid() && (fsync(directory.get()) == 0 || errno == EINVAL);
}

TemporaryFile::TemporaryFile(const std::string& path) {
  RemoveLeftOvers(path);
  const std::string prefix =
      absl::StrCat(TemporaryPrefix(path), getpid(), ".", gettid());
  for (int number = 0;; ++number) {
    name_ = absl::StrCat(prefix, ".", number);
    descriptor_ = Descriptor(
        open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!descriptor_.valid() && errno == EEXIST) continue;
    if (!descriptor_.valid()) return;
    const bool locked = flock(descriptor_.get(), LOCK_EX | LOCK_NB) == 0 ||
                        errno != EWOULDBLOCK;
    struct stat file = {};
    // Before it was locked, another process could have removed it as a
    // leftover.
    if (locked && fstat(descriptor_.get(), &file) == 0 && file.st_nlink > 0) {
      return;
    }
  }
}

TemporaryFile::~TemporaryFile() {
  if (descriptor_.valid() && !renamed_) unlink(name_.c_str());
}

bool TemporaryFile::Rename(const std::string& path) {
  renamed_ = std::rename(name_.c_str(), path.c_str()) == 0;
  return renamed_;
}

absl::StatusOr<NewFile> NewFile::Open(const std::string& path) {
  const auto failed = [&path] {
    return absl::ErrnoToStatus(errno,
                               absl::StrCat("cannot write '", path, "'"));
  };
  if (IsStream(path)) {
    const int number = DescriptorNamed(path);
    Descriptor stream(number >= 0 ? fcntl(number, F_DUPFD_CLOEXEC, 0)
                                  : open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!stream.valid()) return failed();
    return NewFile(path, std::move(stream), nullptr);
  }
  std::error_code error;
  if (std::filesystem::exists(path, error) &&
      !std::filesystem::is_regular_file(path, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot write '", path, "': it is not a regular file"));
  }
  auto file = std::make_unique<TemporaryFile>(path);
  if (!file->valid()) return failed();
  return NewFile(path, Descriptor(), std::move(file));
}

int NewFile::descriptor() const {
  return file_ != nullptr ? file_->descriptor() : stream_.get();
}

absl::Status NewFile::Write(absl::string_view bytes) {
  return Outcome(WriteAll(descriptor(), bytes));
}

absl::Status NewFile::Commit() {
  if (file_ == nullptr) return absl::OkStatus();
  int error = fsync(file_->descriptor()) == 0 ? 0 : errno;
  if (error == 0 && !(file_->Rename(path_) && SyncDirectory(path_)))
    error = errno;
  file_.reset();
  return Outcome(error);
}

absl::Status NewFile::Outcome(int error) const {
  if (error == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(error, absl::StrCat("cannot write '", path_, "'"));
}

}  // namespace hvdlite::base
