// CommitWriter: brings a training's commits to where they are kept, in the
// background.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "base/commit_store.h"
#include "base/mutex.h"

namespace hvdlite::base {

// A thread of its own writes one commit after the other. Whoever commits does
// not wait for a place that is slow: only the newest commit waits for the one
// that is being written, and takes the place of an older one that waits.
class CommitWriter {
 public:
  // `place` is called by the thread, and may block. What fails is told to
  // `warn`, once until something succeeds, and ends nothing.
  CommitWriter(std::function<absl::Status(const StoredCommit&)> place,
               std::function<void(const std::string&)> warn);
  ~CommitWriter();  // when all is written
  CommitWriter(const CommitWriter&) = delete;
  CommitWriter& operator=(const CommitWriter&) = delete;

  void Write(std::shared_ptr<const StoredCommit> commit);

  // Until the newest commit is written. Whether it is; true if there was none.
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
  bool succeeded_ ABSL_GUARDED_BY(mutex_) = true;  // the last
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace hvdlite::base
