// Futex: how a thread sleeps until another process changes a word.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace hvdlite::collective {

static_assert(std::atomic<uint32_t>::is_always_lock_free &&
                  sizeof(std::atomic<uint32_t>) == 4,
              "a futex is a plain 32-bit word");

// Sleeps until `word`, which may lie in memory shared with other processes, is
// woken, for `timeout` at most; not at all if it differs from `expected`.
// Returns early now and then: look at the condition again.
void FutexWait(std::atomic<uint32_t>& word, uint32_t expected,
               absl::Duration timeout);

// Wakes all who sleep on `word`.
void FutexWake(std::atomic<uint32_t>& word);

}  // namespace hvdlite::collective
