// ControlChannel: carries small messages between ranks; and those of its
// implementations that need no options.
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

// Reliable, in order between any two ranks. One calling thread at a time.
// Errors (Unavailable): the transport broke; the channel is then of no use.
class ControlChannel {
 public:
  virtual ~ControlChannel() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // The nodes whose tree (PlaceInTree) this channel carries messages for: it
  // may reach nobody but this rank's neighbours there. Null: it reaches
  // everybody, whatever the nodes are.
  virtual std::shared_ptr<const WorldLayout> layout() const { return nullptr; }

  // Queues a message; never waits for the receiver. `to` is a rank that the
  // channel reaches.
  virtual absl::Status Send(int to, std::string bytes) = 0;

  // The next message, from any rank, or nullopt if none has arrived. Also makes
  // progress on what is being sent.
  virtual absl::StatusOr<std::optional<ControlMessage>> TryReceive() = 0;

  // Of the messages that have been sent, counted over all receivers, the first
  // delivered(), and perhaps some later ones, have left this rank's hands: they
  // arrive though this rank does nothing more. TryReceive goes on with the
  // rest.
  virtual uint64_t delivered() = 0;

  // Blocks until everything sent has left this rank's buffers.
  // DeadlineExceeded after `timeout`.
  virtual absl::Status Flush(absl::Duration timeout) = 0;

  // Descriptors that become readable when TryReceive may have something, if
  // PrepareToSleep has said so since the last call of TryReceive; empty where
  // the channel has to be polled. Always the same ones.
  virtual std::vector<int> wake_descriptors() const = 0;

  // To be called before a thread sleeps on the descriptors, after TryReceive
  // has returned nullopt. False: something has come meanwhile; do not sleep,
  // but call TryReceive. True: whatever comes from now on, and whatever lets
  // what is queued go on its way, makes a descriptor readable, until TryReceive
  // is called. This is where a transport is armed whose senders should not pay
  // for waking a receiver that is awake.
  virtual bool PrepareToSleep() { return true; }

  // What to warn the user of since the last call; the channel goes on.
  virtual std::vector<std::string> TakeWarnings() { return {}; }

  // "MPI", "SINGLE".
  virtual absl::string_view name() const = 0;
};

// The channel of a world of one rank, which never receives anything. Errors:
// ResourceExhausted when there are no more descriptors.
absl::StatusOr<std::unique_ptr<ControlChannel>> CreateSingleRankChannel();

// The channel of a world whose nodes have channels of their own, for the tree
// of `layout`. Messages between ranks of one node go through `node`, where they
// are numbered as in the order of their ranks; all others go through `world`.
// `node` may be null where a rank is alone on its node, `world` where nothing
// is sent to other nodes: where there are none, and on ranks that do not lead
// theirs. Holds nothing per rank but the layout, which it shares.
//
// A world channel that has to be polled makes the whole channel one that has to
// be, unless it is not needed.
std::unique_ptr<ControlChannel> CreateRoutedChannel(
    int world_rank, std::shared_ptr<const WorldLayout> layout,
    std::unique_ptr<ControlChannel> node,
    std::unique_ptr<ControlChannel> world);

// `inner`, which breaks with the first error of `look`. TryReceive calls that
// when `period` has passed since the last time, and whoever sleeps is woken to
// do so. For what no message tells of. Errors: ResourceExhausted.
absl::StatusOr<std::unique_ptr<ControlChannel>> CreateWatchedChannel(
    std::unique_ptr<ControlChannel> inner, std::function<absl::Status()> look,
    absl::Duration period);

// The channel over MPI point-to-point messages, which is in
// hvdlite::negotiation_mpi. Between `members`, ranks of the world in ascending
// order, or where there are none between all, on a communicator of its own.
// Collective over them; a rank that is not among them gets null at once. They
// keep their numbers. MPI must be initialised, and stay so until the channel is
// gone. Has no descriptor: it is polled.
absl::StatusOr<std::unique_ptr<ControlChannel>> CreateMpiChannel(
    absl::Span<const int> members = {});

}  // namespace hvdlite::negotiation
