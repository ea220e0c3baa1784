#include "negotiation/channel/ucx/arrival_order.h"

#include <utility>

namespace hvdlite::negotiation {

void ArrivalOrder::Add(int from, uint64_t number, std::string bytes) {
  Sender& sender = senders_[from];
  if (number != sender.next) {
    sender.early.emplace(number, std::move(bytes));
    return;
  }
  in_order_.push_back({from, std::move(bytes)});
  ++sender.next;
  while (!sender.early.empty() && sender.early.begin()->first == sender.next) {
    in_order_.push_back({from, std::move(sender.early.begin()->second)});
    sender.early.erase(sender.early.begin());
    ++sender.next;
  }
}

std::optional<ControlMessage> ArrivalOrder::Take() {
  if (in_order_.empty()) return std::nullopt;
  ControlMessage message = std::move(in_order_.front());
  in_order_.pop_front();
  return message;
}

}  // namespace hvdlite::negotiation
