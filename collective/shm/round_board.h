// RoundBoard: the progress of each rank of a node, visible to all.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "collective/shm/shared_memory.h"

namespace hvdlite::collective {

// Counters of rounds, which only grow. Each is written only by its own rank.
// Data that a rank wrote to shared memory before it published a counter is
// visible to ranks that waited for the counter. One calling thread at a time
// per rank.
class RoundBoard {
 public:
  enum Counter {
    kPacked,   // this rank's contribution is in its slot
    kReduced,  // this rank's slice of the result is in its slot
    kRead,     // this rank no longer reads slots of that round
  };
  static constexpr size_t kNumCounters = 3;

  // Size of the board at the beginning of every segment of `memory`, which must
  // outlive the board. A segment of zeros is a valid board.
  static constexpr size_t kBytes = 4096;
  explicit RoundBoard(const NodeMemory& memory);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(places_.size()); }

  // Sets this rank's counter and wakes the ranks that wait for it.
  void Publish(Counter counter, uint64_t value);

  // Like Publish(), but others may see it only after the next Publish().
  void PublishLater(Counter counter, uint64_t value);

  // After this time a rank checks again without a wake-up: its peer may be
  // dead.
  static constexpr absl::Duration kLongestSleep = absl::Milliseconds(1);

  // Blocks until all other ranks have published `value` or more: spins for a
  // while (set_spin()), then sleeps. `while_waiting` is called before each
  // sleep of at most `longest_sleep`; an error from it ends the wait.
  absl::Status WaitForAll(Counter counter, uint64_t value,
                          absl::FunctionRef<absl::Status()> while_waiting,
                          absl::Duration longest_sleep = kLongestSleep) {
    return Wait(0, size(), counter, value, while_waiting, longest_sleep);
  }

  void set_spin(absl::Duration spin) { spin_ = spin; }

 private:
  // Aligned to whole cache lines: 64 bytes, which some processors fetch in
  // pairs, or the 256 bytes of an A64FX.
  struct alignas(256) Counters {
    std::array<std::atomic<uint64_t>, kNumCounters> values;
  };
  struct alignas(256) Bed {
    std::atomic<uint32_t> asleep;
    std::atomic<uint32_t> doorbell;  // the futex
  };
  struct Place {
    Counters counters;
    Bed bed;
  };
  static_assert(sizeof(Place) <= kBytes);
  static_assert(std::atomic<uint64_t>::is_always_lock_free);

  // Like WaitForAll(), for the ranks from `begin` to `end`.
  absl::Status Wait(int begin, int end, Counter counter, uint64_t value,
                    absl::FunctionRef<absl::Status()> while_waiting,
                    absl::Duration longest_sleep);
  bool AllHave(int begin, int end, Counter counter, uint64_t value,
               std::memory_order order) const;

  const int rank_;
  std::vector<Place*> places_;  // of each rank
  absl::Duration spin_;
};

}  // namespace hvdlite::collective
