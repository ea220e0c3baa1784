// ReleasedNames collects names that the application does not use any more.
#pragma once

#include <atomic>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"

namespace hvdlite::negotiation {

// Names of destroyed persistent operations, until the progress loop takes them.
// May outlive the OperationTable, as persistent operations may. Thread-safe.
class ReleasedNames {
 public:
  void Add(const std::string& name) noexcept {
    base::MutexLock lock(&mutex_);
    if (closed_) return;
    try {
      names_.push_back(name);
      any_.store(true, std::memory_order_relaxed);
    } catch (const std::bad_alloc&) {
      // Its ids are forgotten later, after a while without use.
    }
  }
  // Names are not taken any more.
  void Close() {
    base::MutexLock lock(&mutex_);
    closed_ = true;
    names_.clear();
  }
  std::vector<std::string> Take() {
    if (!any_.load(std::memory_order_relaxed)) return {};
    base::MutexLock lock(&mutex_);
    any_.store(false, std::memory_order_relaxed);
    return std::exchange(names_, {});
  }

 private:
  std::atomic<bool> any_{false};
  base::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::string> names_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hvdlite::negotiation
