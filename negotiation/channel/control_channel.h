// ControlChannel carries small messages between ranks. This header also creates
// the implementations that need no options.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace hvdlite::negotiation {

class WorldLayout;

struct ControlMessage {
  int from = 0;
  std::string bytes;
};

// Delivery is reliable, and in order between any two ranks. One thread at a
// time may call. Errors: Unavailable if the transport broke; the channel cannot
// be used any more.
class ControlChannel {
 public:
  virtual ~ControlChannel() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // The nodes for whose tree (PlaceInTree) this channel carries messages. It
  // may reach only this rank's neighbours in that tree. Null: it reaches all
  // ranks, whatever the nodes are.
  virtual std::shared_ptr<const WorldLayout> layout() const { return nullptr; }

  // Queues a message; never waits for the receiver. The channel must reach
  // `to`.
  virtual absl::Status Send(int to, std::string bytes) = 0;

  // Returns the next message, from any rank, or nullopt if none has arrived.
  // Also makes progress on queued messages.
  virtual absl::StatusOr<std::optional<ControlMessage>> TryReceive() = 0;

  // The first delivered() messages that this rank sent, counted over all
  // receivers, have left this rank: they arrive even if this rank does nothing
  // more. Some later ones may have left it, too. TryReceive makes progress on
  // the rest.
  virtual uint64_t delivered() = 0;

  // Blocks until everything sent has left this rank's buffers.
  // DeadlineExceeded after `timeout`.
  virtual absl::Status Flush(absl::Duration timeout) = 0;

  // Descriptors that become readable when TryReceive may have something. This
  // works only if PrepareToSleep returned true after the last TryReceive.
  // Empty: the channel has to be polled. The result never changes.
  virtual std::vector<int> wake_descriptors() const = 0;

  // Call this before a thread sleeps on the descriptors, after TryReceive
  // returned nullopt. False: something has arrived meanwhile; call TryReceive
  // instead of sleeping. True: until the next TryReceive, each arrival makes a
  // descriptor readable, and so does room for a queued message. A transport can
  // arm its wake-ups here; then a sender does not pay for waking a receiver
  // that is awake.
  virtual bool PrepareToSleep() { return true; }

  // Warnings for the user since the last call. The channel still works.
  virtual std::vector<std::string> TakeWarnings() { return {}; }

  // For example "MPI" or "SINGLE".
  virtual absl::string_view name() const = 0;
};

// Creates the channel of a world of one rank. It never receives anything.
// Errors: ResourceExhausted if there are no descriptors left.
absl::StatusOr<std::unique_ptr<ControlChannel>> CreateSingleRankChannel();

// Creates the channel of a world whose nodes have channels of their own, for
// the tree of `layout`. Messages between ranks of one node go through `node`,
// which numbers them in the order of their ranks. All other messages go through
// `world`. `node` may be null if a rank is alone on its node. `world` may be
// null if this rank sends nothing to other nodes: there are none, or it does
// not lead its node. The channel stores nothing per rank except the layout,
// which it shares.
//
// If a world channel that is needed has to be polled, the whole channel has to
// be polled.
std::unique_ptr<ControlChannel> CreateRoutedChannel(
    int world_rank, std::shared_ptr<const WorldLayout> layout,
    std::unique_ptr<ControlChannel> node,
    std::unique_ptr<ControlChannel> world);

// Adds a periodic check to `inner`, for faults that no message reports. When
// `period` has passed, TryReceive calls `look`; a sleeping thread is woken for
// this. The channel breaks with the first error of `look`. Errors:
// ResourceExhausted.
absl::StatusOr<std::unique_ptr<ControlChannel>> CreateWatchedChannel(
    std::unique_ptr<ControlChannel> inner, std::function<absl::Status()> look,
    absl::Duration period);

// Creates the channel over MPI point-to-point messages (in
// hvdlite::negotiation_mpi), on a communicator of its own. It connects
// `members`, ranks of the world in ascending order, or all ranks if `members`
// is empty. Ranks keep their numbers. The call is collective over the members;
// other ranks get null immediately. MPI must be initialised until the channel
// is destroyed. The channel has no descriptor: it has to be polled.
absl::StatusOr<std::unique_ptr<ControlChannel>> CreateMpiChannel(
    absl::Span<const int> members = {});

}  // namespace hvdlite::negotiation
