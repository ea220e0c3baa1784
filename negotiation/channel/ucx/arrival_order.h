// ArrivalOrder: puts the messages of each sender back into order.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "negotiation/channel/control_channel.h"

namespace hvdlite::negotiation {

// Transports complete a large message after small ones that were sent later.
// Here messages, numbered 0, 1, 2, ... by their sender, wait for those before
// them. One thread at a time.
class ArrivalOrder {
 public:
  // Message `number` of rank `from` has arrived; each arrives once.
  void Add(int from, uint64_t number, std::string bytes);

  // The next message that is in order, if any.
  std::optional<ControlMessage> Take();
  // Whether there is none.
  bool empty() const { return in_order_.empty(); }

 private:
  struct Sender {
    uint64_t next = 0;
    std::map<uint64_t, std::string> early;
  };
  absl::flat_hash_map<int, Sender> senders_;
  std::deque<ControlMessage> in_order_;
};

}  // namespace hvdlite::negotiation
