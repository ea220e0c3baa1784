#include "base/fork_mark.h"

#include <pthread.h>

#include <atomic>

namespace hvdlite::base {
namespace {

// Between the start of the program and this process.
constinit std::atomic<uint64_t> forks = 0;

// When the program or the library is loaded. A handler can only be refused
// where there is no memory.
[[maybe_unused]] const int counts_forks = pthread_atfork(
    nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

ForkMark::ForkMark() : forks_(forks.load(std::memory_order_relaxed)) {}

bool ForkMark::forked() const {
  return forks.load(std::memory_order_relaxed) != forks_;
}

}  // namespace hvdlite::base
