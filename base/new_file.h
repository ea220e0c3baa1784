// Files that appear under their names only when they are complete.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/descriptor.h"

namespace hvdlite::base {

// Whether writing to `path` creates no file: "-" (standard output),
// /dev/stdout, /dev/stderr, /dev/fd/N, or an existing pipe or character device
// such as /dev/null.
bool IsStream(const std::string& path);

// Whether both paths name one file, through links of any kind. Files that do
// not exist yet are compared by their paths.
bool IsSameFile(const std::string& a, const std::string& b);

// Makes the names in the directory of `path` reach the disk. False with errno
// set. Some network file systems cannot do this; that is not an error.
bool SyncDirectory(const std::string& path);

// A temporary file beside `path` with a name that no other process or thread
// uses. The destructor removes it unless it was renamed. The constructor also
// removes the files that ended processes of this host left beside `path`.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& path);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  bool valid() const { return descriptor_.valid(); }  // if false, errno is set
  const std::string& name() const { return name_; }
  int descriptor() const { return descriptor_.get(); }

  // False with errno set.
  bool Rename(const std::string& path);

 private:
  std::string name_;
  Descriptor descriptor_;
  bool renamed_ = false;
};

// The output of a program to `path`: a stream, or a new file that replaces
// `path` with Commit(). Errors name `path` and the reason.
class NewFile {
 public:
  // InvalidArgument if `path` exists and is not a file; otherwise an error if
  // no file can be created there.
  static absl::StatusOr<NewFile> Open(const std::string& path);

  absl::Status Write(absl::string_view bytes);
  // The descriptor that Write() writes to.
  int descriptor() const;
  // Bytes and name have reached the disk when it returns. Without this call
  // there is no new file.
  absl::Status Commit();

 private:
  NewFile(std::string path, Descriptor stream,
          std::unique_ptr<TemporaryFile> file)
      : path_(std::move(path)),
        stream_(std::move(stream)),
        file_(std::move(file)) {}
  absl::Status Outcome(int error) const;

  std::string path_;
  Descriptor stream_;                    // one of the two is set
  std::unique_ptr<TemporaryFile> file_;  // none after Commit()
};

}  // namespace hvdlite::base
