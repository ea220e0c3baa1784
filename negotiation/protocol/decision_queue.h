// DecisionQueue: what the ranks have decided, in one order, until this rank
// carries it out.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "negotiation/protocol/gate.h"
#include "negotiation/protocol/membership.h"
#include "negotiation/protocol/messages.pb.h"
#include "negotiation/protocol/request.h"
#include "negotiation/protocol/tensor_table.h"
#include "negotiation/protocol/tree.h"

namespace hvdlite::negotiation {

// Something that this rank does, in the order of the numbers. All ranks get the
// same decisions, but for the batches of process sets that they are not in.
struct Decision {
  enum class Kind {
    kBatch,             // run the batch
    kFailure,           // operation `failed` ends with `message`; the world is
                        // healthy
    kAddProcessSet,     // `process_set` of `members` begins
    kRemoveProcessSet,  // it ends; operations `failed` end with `message`
    kAllJoined,         // all ranks have joined, `last_joined` last
    kDeparture,         // a rank left: everything pending and later ends with
                        // `message`
    kBroken,            // the world is aborted, because of `message`
    kShutdown,          // all ranks have left: the last decision
  };
  // An operation of a batch.
  struct Tensor {
    // This rank's; nullopt: this rank has joined, and takes part in `request`
    // with nothing.
    std::optional<Token> token;
    std::shared_ptr<const Request> request;
    int last_rank = 0;        // who submitted last
    int64_t lateness_us = 0;  // how long after the first
  };

  Kind kind = Kind::kBatch;
  uint64_t number = 0;
  ProcessSetId process_set = 0;
  std::vector<Tensor> tensors;  // reduced together, in this order
  std::vector<Token> absent;    // end without a reduction
  int participants = 0;         // members that have not joined
  std::vector<Token> failed;
  uint32_t next_step = 0;      // of a failure; see Outcome
  std::vector<int> members;    // of the new process set
  std::optional<Token> token;  // the operation that asked for it
  int last_joined = 0;
  std::string message;

  // This rank meets the other members at a gate before it carries the decision
  // out, and calls OnDone() afterwards.
  bool has_gate = false;
  std::string name;                   // of its first operation, for messages
  std::optional<int64_t> arrived_ns;  // when it came to the gate
  uint32_t gate_flags = 0;            // of all members: GateFlags
};

// Decisions begin in the order of their numbers, and those with gates run one
// at a time. One with a gate begins once all members have come to it (Gates),
// and what this rank has told others of gates so far is with them. Pure: no
// I/O, threads or clock.
class DecisionQueue {
 public:
  struct Options {
    int rank = 0;
    // As Negotiator::Options has them.
    std::function<std::optional<uint32_t>(const Decision&)> at_gate = {};
    bool blocks_before_relaying = false;
  };
  // `tree` and `membership` outlive this.
  DecisionQueue(Options options, const TreePosition& tree,
                const Membership& membership);

  // Opens the gate of a decision for the members that its process set has now:
  // this rank, if it is one, is to meet the others before it carries the
  // decision out; if not, it may have to relay. `counts_on_waiting`: as Gates::
  // Open.
  void OpenGate(Decision& decision, bool counts_on_waiting = false);
  void Push(Decision decision) { decisions_.push_back(std::move(decision)); }

  // Comes to the gate of the next decision, if it has one that this rank is not
  // at, and nothing is being executed.
  enum class Arrival {
    kNone,
    kAtGate,
    kTooLate,  // it cannot take part, but the others may have begun
  };
  Arrival ComeToGate(int64_t now_ns);

  // As Negotiator has them.
  bool CanBegin(uint64_t delivered) const;
  std::optional<Decision> Begin(uint64_t delivered);
  // The decision with a gate that began last is over. Returns its name.
  const std::string& OnDone();

  // The world is aborted: nobody meets at a gate any more, and what this rank
  // was to meet others for is dropped, but for what they may already be in.
  void Abandon();

  // News of gates that a neighbour has told, as Gates::OnReport and OnMessage.
  void OnReport(int from, std::optional<uint64_t> waits_after) {
    gates_.OnReport(from, waits_after);
  }
  absl::Status OnMessage(int from, const wire::Message& message);
  // Adds the news for a neighbour to a message, if there are any.
  void AddNews(int to, wire::Message& message) {
    gates_.TakeOutgoing(to, *message.mutable_gates());
  }
  // This is the message's number, as `delivered` counts.
  void OnSend(const wire::Message& message, uint64_t number);

  // The decision that is next; null: there is none.
  const Decision* next() const {
    return decisions_.empty() ? nullptr : &decisions_.front();
  }
  bool runs() const { return running_; }
  // Nothing is left to do.
  bool idle() const { return decisions_.empty() && !running_; }
  // The last decision has begun: all ranks have left.
  bool shut_down() const { return shut_down_; }
  // The neighbours behind which a member is missing at the next one's gate.
  std::vector<int> Missing() const {
    return gates_.Missing(decisions_.front().number);
  }

 private:
  // What was told of which gate in which message, until it is delivered.
  struct Told {
    uint64_t gate = 0;
    uint64_t message = 0;
  };

  // Whether this rank has nothing left to do for that gate or an earlier one.
  bool HasNothingLeft(uint64_t number, uint64_t delivered) const;

  const Options options_;
  const Membership& membership_;
  Gates gates_;
  std::deque<Decision> decisions_;
  bool running_ = false;      // one with a gate is being executed
  std::string running_name_;  // its first operation
  bool shut_down_ = false;
  std::vector<Told> told_;
};

}  // namespace hvdlite::negotiation
