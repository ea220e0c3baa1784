// ShmLink: what a rank has to do with one other rank of its node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "negotiation/channel/shm/cell_ring.h"
#include "negotiation/channel/shm/doorbell.h"

namespace hvdlite::negotiation {

// One thread at a time.
class ShmLink {
 public:
  ShmLink(CellRing to_peer, CellRing from_peer, DoorbellButton peers_doorbell)
      : writer_(to_peer),
        reader_(from_peer),
        doorbell_(std::move(peers_doorbell)) {}

  // Hands the message to the peer, or as much of it as there is room for; the
  // rest waits for PushOn. True: all of it. `number`: see first_waiting().
  bool Send(std::string message, uint64_t number);

  // Hands over what has waited. True: nothing waits any more.
  bool PushOn();

  // Whether the peer has all that was sent.
  bool done() const { return waiting_.empty(); }
  size_t num_waiting() const { return waiting_.size(); }
  // The number of the first message that the peer does not have wholly.
  uint64_t first_waiting() const { return waiting_.front().number; }

  // The next message, if it has arrived whole.
  bool Receive(std::string& message);

  // Before going to sleep: the doorbell rings when the peer has made room for
  // what waits.
  void AwaitRoom() { writer_.AwaitRoom(); }

  bool CanPushOn() { return !done() && writer_.HasRoom(); }
  bool CanReceive() const { return reader_.HasCells(); }

 private:
  CellWriter writer_;
  CellReader reader_;
  DoorbellButton doorbell_;
  struct Waiting {
    std::string bytes;
    uint64_t number = 0;
  };
  std::deque<Waiting> waiting_;
  size_t written_ = 0;    // bytes of the first one
  std::string arriving_;  // what has arrived of the next message
};

}  // namespace hvdlite::negotiation
