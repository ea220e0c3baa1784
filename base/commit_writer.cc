#include "base/commit_writer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/contain_exceptions.h"

namespace hvdlite::base {

CommitWriter::CommitWriter(
    std::function<absl::Status(const StoredCommit&)> place,
    std::function<void(const std::string&)> warn)
    : place_(std::move(place)), warn_(std::move(warn)) {}

CommitWriter::~CommitWriter() {
  {
    const MutexLock lock(&mutex_);
    ending_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void CommitWriter::Write(std::shared_ptr<const StoredCommit> commit) {
  const MutexLock lock(&mutex_);
  waiting_ = std::move(commit);
  changed_.NotifyAll();
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
}

bool CommitWriter::Wait() {
  const MutexLock lock(&mutex_);
  while (waiting_ != nullptr || writing_) changed_.Wait(&mutex_);
  return succeeded_;
}

void CommitWriter::Run() {
  for (;;) {
    std::shared_ptr<const StoredCommit> commit;
    {
      const MutexLock lock(&mutex_);
      while (waiting_ == nullptr && !ending_) changed_.Wait(&mutex_);
      if (waiting_ == nullptr) return;
      commit = std::move(waiting_);
      waiting_ = nullptr;
      writing_ = true;
    }
    absl::Status status = no_memory_;
    ContainExceptions([&] { status = place_(*commit); });
    commit = nullptr;  // frees memory before the next one
    const MutexLock lock(&mutex_);
    if (!status.ok() && succeeded_) {
      ContainExceptions([&] {
        warn_(absl::StrCat(status.message(),
                           "; training continues; further failures are not "
                           "logged until a commit succeeds"));
      });
    }
    succeeded_ = status.ok();
    writing_ = false;
    changed_.NotifyAll();
  }
}

}  // namespace hvdlite::base
