// Files that appear under their names once they are complete.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/descriptor.h"

namespace hvdlite::base {

// Whether what is written to `path` goes past any file: "-", which stands for
// standard output, /dev/stdout, /dev/stderr, /dev/fd/N, or a pipe or character
// device that exists, such as /dev/null.
bool IsStream(const std::string& path);

// Whether both paths name one file, through whatever links; of a file that does
// not exist yet, by its path.
bool IsSameFile(const std::string& a, const std::string& b);

// Makes the names of files beside `path` reach the disk. False with errno set.
// Some network file systems cannot; that is no error.
bool SyncFolder(const std::string& path);

// A file beside `path`, of a name that no other process or thread uses; removed
// with its owner unless that gave it another name. Making one removes those
// that ended processes of this host have left beside `path`.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& path);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  bool valid() const { return descriptor_.valid(); }  // else errno is set
  const std::string& name() const { return name_; }
  int descriptor() const { return descriptor_.get(); }

  // False with errno set.
  bool Rename(const std::string& path);

 private:
  std::string name_;
  Descriptor descriptor_;
  bool renamed_ = false;
};

// What a program writes to `path`: a stream, or a file that takes its name, and
// the place of the one that had it, with Commit(). Errors name `path` and the
// reason.
class NewFile {
 public:
  // InvalidArgument if `path` is a directory or another thing that is no file;
  // else an error if no file can be made there.
  static absl::StatusOr<NewFile> Open(const std::string& path);

  absl::Status Write(absl::string_view bytes);
  // The descriptor that Write() writes to.
  int descriptor() const;
  // The bytes and the name have reached the disk when it returns. Without it
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
  Descriptor stream_;                    // or else
  std::unique_ptr<TemporaryFile> file_;  // none once it is committed
};

}  // namespace hvdlite::base
