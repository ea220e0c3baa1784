#include "collective/shm/round_board.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

#include "base/status_macros.h"

namespace hvdlite::collective {
namespace {

static_assert(std::atomic<uint32_t>::is_always_lock_free &&
                  sizeof(std::atomic<uint32_t>) == 4,
              "a futex is a plain 32-bit word");

// Sleeps until `word` is woken, for `timeout` at most. `word` may be in memory
// that processes share. Does not sleep if it differs from `expected`. May
// return early: check the condition again.
void FutexWait(std::atomic<uint32_t>& word, uint32_t expected,
               absl::Duration timeout) {
  const timespec relative = absl::ToTimespec(timeout);
  syscall(SYS_futex, &word, FUTEX_WAIT, expected,
          timeout == absl::InfiniteDuration() ? nullptr : &relative, nullptr,
          0);
}

// Wakes all threads that sleep on `word`.
void FutexWake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// Checks of the counters between two readings of the clock.
constexpr int kLooks = 64;
// Gives other processes on this core a chance to run before this rank sleeps.
constexpr int kYields = 4;

void RelaxProcessor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int64_t NowNanos() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

RoundBoard::RoundBoard(const NodeMemory& memory) : rank_(memory.rank()) {
  for (int rank = 0; rank < memory.size(); ++rank) {
    places_.push_back(reinterpret_cast<Place*>(memory.segment(rank).data()));
  }
}

void RoundBoard::PublishLater(Counter counter, uint64_t value) {
  places_[static_cast<size_t>(rank_)]->counters.values[counter].store(
      value, std::memory_order_release);
}

// No wake-up is lost: a sleeper sets `asleep` and then reads the counter; the
// publisher writes the counter and then reads `asleep`. These four accesses are
// sequentially consistent, so at least one of the two sees the other's write.
void RoundBoard::Publish(Counter counter, uint64_t value) {
  places_[static_cast<size_t>(rank_)]->counters.values[counter].store(
      value, std::memory_order_seq_cst);
  for (int rank = 0; rank < size(); ++rank) {
    if (rank == rank_) continue;
    Bed& bed = places_[static_cast<size_t>(rank)]->bed;
    if (bed.asleep.load(std::memory_order_seq_cst) == 0) continue;
    bed.doorbell.fetch_add(1, std::memory_order_release);
    FutexWake(bed.doorbell);
  }
}

bool RoundBoard::AllHave(int begin, int end, Counter counter, uint64_t value,
                         std::memory_order order) const {
  for (int rank = begin; rank < end; ++rank) {
    if (rank != rank_ &&
        places_[static_cast<size_t>(rank)]->counters.values[counter].load(
            order) < value) {
      return false;
    }
  }
  return true;
}

absl::Status RoundBoard::Wait(int begin, int end, Counter counter,
                              uint64_t value,
                              absl::FunctionRef<absl::Status()> while_waiting,
                              absl::Duration longest_sleep) {
  if (AllHave(begin, end, counter, value, std::memory_order_acquire)) {
    return absl::OkStatus();
  }
  if (spin_ > absl::ZeroDuration()) {
    const int64_t end_ns = NowNanos() + absl::ToInt64Nanoseconds(spin_);
    do {
      for (int look = 0; look < kLooks; ++look) {
        RelaxProcessor();
        if (AllHave(begin, end, counter, value, std::memory_order_acquire)) {
          return absl::OkStatus();
        }
      }
    } while (NowNanos() < end_ns);
  }
  for (int i = 0; i < kYields; ++i) {
    sched_yield();
    if (AllHave(begin, end, counter, value, std::memory_order_acquire)) {
      return absl::OkStatus();
    }
  }
  Bed& bed = places_[static_cast<size_t>(rank_)]->bed;
  while (true) {
    HVDLITE_RETURN_IF_ERROR(while_waiting());
    const uint32_t seen = bed.doorbell.load(std::memory_order_acquire);
    bed.asleep.store(1, std::memory_order_seq_cst);
    const bool all =
        AllHave(begin, end, counter, value, std::memory_order_seq_cst);
    if (!all) FutexWait(bed.doorbell, seen, longest_sleep);
    bed.asleep.store(0, std::memory_order_relaxed);
    if (all || AllHave(begin, end, counter, value, std::memory_order_acquire)) {
      return absl::OkStatus();
    }
  }
}

}  // namespace hvdlite::collective
