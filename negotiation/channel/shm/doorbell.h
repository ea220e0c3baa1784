// Doorbell: wakes a rank that sleeps, at no cost while it is awake. DeathWatch:
// learns that processes of this node have ended.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/descriptor.h"

namespace hvdlite::negotiation {

// What a rank and those who wake it share; it lies in memory that all of them
// see, and begins with zeros.
struct DoorbellPlace {
  std::atomic<uint32_t> armed;
  // Where to ring: a pipe.
  int32_t process;
  int32_t descriptor;
  uint64_t inode;
};

// The rank's own end. One thread at a time, but for descriptor().
//
// Why no wake-up gets lost: a sleeper arms the doorbell and then looks once
// more for what it waits for; others do that and then press the button. All
// four steps are sequentially consistent, so that they have one order: either
// Press comes after Arm, and finds the doorbell armed (or taken by somebody
// else, who then writes to the pipe), or what was done before Press also comes
// before Arm, and the last look finds it.
class Doorbell {
 public:
  // Fills `place`, which outlives the doorbell. Errors: ResourceExhausted when
  // there are no descriptors left.
  static absl::StatusOr<std::unique_ptr<Doorbell>> Create(DoorbellPlace& place);

  // Becomes readable when somebody presses while it is armed.
  int descriptor() const { return pipe_.reader.get(); }

  // From now on until Disarm. Look again after this and before sleeping.
  void Arm();

  enum class State { kNotArmed, kNotRung, kRung };
  // Tells what it was, and makes the descriptor unreadable. A byte that is
  // still on its way may wake the next sleeper for nothing, once.
  State Disarm();

 private:
  Doorbell(DoorbellPlace& place, base::Pipe pipe);

  DoorbellPlace& place_;
  const base::Pipe pipe_;  // both ends, so that it never looks hung up
  bool armed_ = false;
  int64_t bytes_to_come_ = 0;  // a presser each has promised
};

// The other ranks' end; one thread at a time each. Pressing it when the rank is
// gone does nothing.
class DoorbellButton {
 public:
  // `place` outlives the button. Errors: Unavailable when the pipe of another
  // process cannot be reached, or is not what `place` says.
  static absl::StatusOr<DoorbellButton> Attach(DoorbellPlace& place);

  // After what the rank may wait for.
  void Press() {
    if (place_->armed.load(std::memory_order_seq_cst) != 0) Ring();
  }

 private:
  DoorbellButton(DoorbellPlace& place, base::Descriptor pipe)
      : place_(&place), pipe_(std::move(pipe)) {}
  void Ring();

  DoorbellPlace* place_;
  base::Descriptor pipe_;
};

// Learns that processes of this node have ended. One thread at a time, but for
// descriptor().
class DeathWatch {
 public:
  // Watches `processes`, which are alive; this process itself is left out, and
  // so is everything where the system does not offer it (Linux before 5.3, some
  // sandboxes). Errors: ResourceExhausted when there are no descriptors left,
  // Unavailable if a process has ended already.
  static absl::StatusOr<std::unique_ptr<DeathWatch>> Create(
      absl::Span<const pid_t> processes);

  // Readable while Next() has something.
  int descriptor() const { return epoll_.get(); }

  // The index of a process that has ended, each once.
  std::optional<size_t> Next();

 private:
  explicit DeathWatch(base::Descriptor epoll) : epoll_(std::move(epoll)) {}
  absl::Status Add(size_t index, pid_t process);

  const base::Descriptor epoll_;
  std::vector<base::Descriptor> processes_;  // by index
};

}  // namespace hvdlite::negotiation
