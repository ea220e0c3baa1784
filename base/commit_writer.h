// CommitWriter: stores the commits of a training in the background.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "base/commit_store.h"
#include "base/mutex.h"

namespace hvdlite::base {

// Its thread stores one commit after another. A commit does not wait for slow
// storage: only the newest commit waits, and replaces an older one that still
// waits.
class CommitWriter {
 public:
  // The thread calls `place`, which may block. `warn` receives the first
  // failure after a success; failures do not stop the writer.
  CommitWriter(std::function<absl::Status(const StoredCommit&)> place,
               std::function<void(const std::string&)> warn);
  ~CommitWriter();  // waits until all commits are stored
  CommitWriter(const CommitWriter&) = delete;
  CommitWriter& operator=(const CommitWriter&) = delete;

  void Write(std::shared_ptr<const StoredCommit> commit);

  // Waits until the newest commit is stored. Returns whether that succeeded;
  // true if there was none.
  bool Wait();

 private:
  void Run();

  const std::function<absl::Status(const StoredCommit&)> place_;
  const std::function<void(const std::string&)> warn_;
  const absl::Status no_memory_ =
      absl::ResourceExhaustedError("no memory to write a commit");
  Mutex mutex_;
  CondVar changed_;
  std::shared_ptr<const StoredCommit> waiting_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool succeeded_ ABSL_GUARDED_BY(mutex_) = true;  // the last one
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace hvdlite::base
