#include "base/fork_mark.h"

#include <pthread.h>

#include <atomic>

namespace hvdlite::base {
namespace {

// Number of forks between the program's start and this process.
constinit std::atomic<uint64_t> forks = 0;

// Registered when the program or the library is loaded. This fails only without
// memory.
[[maybe_unused]] const int counts_forks = pthread_atfork(
    nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

ForkMark::ForkMark() : forks_(forks.load(std::memory_order_relaxed)) {}

bool ForkMark::forked() const {
  return forks.load(std::memory_order_relaxed) != forks_;
}

}  // namespace hvdlite::base
