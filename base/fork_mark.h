// ForkMark: detects that a process was forked.
#pragma once

#include <cstdint>

namespace hvdlite::base {

// A forked process has the memory of its parent but none of its threads. Their
// locks stay locked for ever, and their work is never done. So an object that
// depends on threads or peers of the parent keeps a mark. A process in which
// the mark is forked() neither uses nor destroys the object. Costs an atomic
// load. posix_spawn() and system() do not count as forks.
class ForkMark {
 public:
  // Marks this process.
  ForkMark();

  // Whether this process was forked, directly or indirectly, from the marking
  // process after the mark was made.
  bool forked() const;

 private:
  uint64_t forks_;
};

// Deleter for std::unique_ptr and std::shared_ptr that never deletes the object
// in a process that was forked after the deleter was made.
template <typename T>
class DeleteUnlessForked {
 public:
  void operator()(T* object) const {
    if (!mark_.forked()) delete object;
  }

 private:
  ForkMark mark_;
};

}  // namespace hvdlite::base
