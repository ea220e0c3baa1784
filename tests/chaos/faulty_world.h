// An in-process world with a fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/mutex.h"
#include "collective/communicator.h"
#include "negotiation/channel/control_channel.h"
#include "negotiation/engine/operation.h"
#include "tests/chaos/fault.h"

namespace hvdlite::testing {

// Wraps the channels and communicators of a world to inject the fault, and
// advances the world's time. Time advances one tick at a time, and only while
// the fault takes time and every rank that can has run since the last tick. So
// no rank is late for lack of a processor. Outlives the world. Thread-safe.
class FaultyWorld {
 public:
  // A tick is a fifth of the heartbeat limit. Time is virtual.
  static constexpr absl::Duration kTick = absl::Milliseconds(10);
  static constexpr absl::Duration kHeartbeat = absl::Milliseconds(50);
  static constexpr absl::Duration kWatchdog = absl::Milliseconds(200);

  FaultyWorld(const Fault& fault, int size, int tree_arity);
  ~FaultyWorld();
  FaultyWorld(const FaultyWorld&) = delete;
  FaultyWorld& operator=(const FaultyWorld&) = delete;

  const base::Clock& clock() const { return clock_; }
  std::unique_ptr<collective::Communicator> Wrap(
      int rank, std::unique_ptr<collective::Communicator> inner);
  std::unique_ptr<negotiation::ControlChannel> WrapChannel(
      int rank, std::unique_ptr<negotiation::ControlChannel> inner);
  // Makes the operation's `allocate` throw if that is the fault.
  void Adjust(int rank, negotiation::Operation& operation);

  void OnShutdown(int rank);
  // The rank's coordinator has been closed: removes its part of the data plane.
  void OnOver(int rank);

  // Advances time, or waits a little for an event. `is_lost` returns whether a
  // rank knows that the world is lost. Returns false when all ranks have ended.
  bool Step(const std::function<bool(int rank)>& is_lost);

  bool fired() const;
  int ticks() const;

 private:
  class Channel;
  class DataPlane;

  // A rank is at a point. Returns an error if it is dead.
  absl::Status Pass(int rank, Fault::Point point);
  void Fire() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StandStill() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Tick() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WakeAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakesTime() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AreNeighbours(int a, int b) const;
  // Whether the fault affects messages between the two ranks.
  bool IsOnLink(int a, int b) const;

  const Fault fault_;
  std::vector<std::vector<int>> neighbours_;  // in the tree, by rank
  base::FakeClock clock_;

  struct Rank {
    base::Descriptor tick;  // readable after a tick
    int looked = 0;         // the last tick at which it read its messages
    bool inside = false;    // it is inside the data plane
    bool shutting_down = false;
    bool over = false;
    bool dead = false;
    std::vector<DataPlane*> communicators;
  };
  mutable base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<Rank> ranks_ ABSL_GUARDED_BY(mutex_);
  int passed_ ABSL_GUARDED_BY(mutex_) = 0;
  bool fired_ ABSL_GUARDED_BY(mutex_) = false;
  int ticks_ ABSL_GUARDED_BY(mutex_) = 0;
  // Whether a rank is stopped or a link is delayed, and until which tick.
  bool still_ ABSL_GUARDED_BY(mutex_) = false;
  int until_ ABSL_GUARDED_BY(mutex_) = 0;
  int pauses_left_ ABSL_GUARDED_BY(mutex_) = 0;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hvdlite::testing
