// ForkMark: notices that a process was forked.
#pragma once

#include <cstdint>

namespace hvdlite::base {

// A process that fork() made has the memory of its parent, but none of its
// threads: what they had locked stays locked for ever, and what they were to do
// is never done. What belongs to the parent's threads or peers therefore keeps
// a mark, and is neither used nor destroyed in a process where that is
// forked(). Costs an atomic load. posix_spawn() and system() fork nothing in this sense.
class ForkMark {
 public:
  // Of this process.
  ForkMark();

  // Whether this process was forked, directly or not, from the one that made
  // the mark, after that.
  bool forked() const;

 private:
  uint64_t forks_;
};

// Deleter of std::unique_ptr and std::shared_ptr that leaves the object as it
// is, for ever, in a process that was forked after the deleter was made.
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
