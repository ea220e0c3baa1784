// EventQueue: what happens next in virtual time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "negotiation/protocol/messages.pb.h"

namespace hvdlite::scale_sim {

// A message on its way or in a rank's inbox.
struct Message {
  int from = 0;
  int64_t bytes = 0;
  negotiation::wire::Message content;
};

struct Event {
  enum class Kind : uint8_t {
    kReady,      // the rank's next tensor is ready
    kGatherEnd,  // its background thread has let submissions gather
    kArrival,    // a message has reached it
    kReceived,   // it has taken a message in
    kServed,     // it has sent what there was to send
    kBatchEnd,   // the batch has run, on all ranks
  };
  int64_t time_ns = 0;
  uint64_t sequence = 0;
  Kind kind = Kind::kReady;
  int rank = 0;
  std::unique_ptr<Message> message;  // of kArrival
};

// Events of the same time come in the order in which they were added.
class EventQueue {
 public:
  void Add(int64_t time_ns, Event::Kind kind, int rank,
           std::unique_ptr<Message> message = nullptr) {
    heap_.push_back(
        {time_ns, next_sequence_++, kind, rank, std::move(message)});
    std::push_heap(heap_.begin(), heap_.end(), IsLater);
  }
  bool empty() const { return heap_.empty(); }
  Event Take() {
    std::pop_heap(heap_.begin(), heap_.end(), IsLater);
    Event event = std::move(heap_.back());
    heap_.pop_back();
    return event;
  }
  int64_t added() const { return static_cast<int64_t>(next_sequence_); }

 private:
  static bool IsLater(const Event& a, const Event& b) {
    return std::tie(a.time_ns, a.sequence) > std::tie(b.time_ns, b.sequence);
  }

  std::vector<Event> heap_;
  uint64_t next_sequence_ = 0;
};

}  // namespace hvdlite::scale_sim
