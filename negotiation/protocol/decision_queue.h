// DecisionQueue keeps what the ranks have decided, in one order, until this
// rank carries it out.
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

// A decision to carry out, in the order of the numbers. All ranks get the same
// decisions, except the buckets of process sets that they are not in.
struct Decision {
  enum class Kind {
    kBucket,            // run the bucket
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
  // An operation of a bucket.
  struct Tensor {
    // This rank's operation. Nullopt: this rank has joined, and takes part in
    // `request` without data.
    std::optional<Token> token;
    std::shared_ptr<const Request> request;
    int last_rank = 0;        // the rank that submitted last
    int64_t lateness_us = 0;  // how long after the first one
  };

  Kind kind = Kind::kBucket;
  uint64_t number = 0;
  ProcessSetId process_set = 0;
  std::vector<Tensor> tensors;  // reduced together, in this order
  std::vector<Token> absent;    // end without a reduction
  int participants = 0;         // members that have not joined
  std::vector<Token> failed;
  uint32_t next_step = 0;      // for a failure; see Outcome
  std::vector<int> members;    // of the new process set
  std::optional<Token> token;  // the operation that asked for it
  int last_joined = 0;
  std::string message;

  // This rank meets the other members at a gate before it carries the decision
  // out, and calls OnDone() afterwards.
  bool has_gate = false;
  std::string name;                   // of its first operation, for messages
  std::optional<int64_t> arrived_ns;  // when this rank entered the gate
  uint32_t gate_flags = 0;            // GateFlags of all members
};

// Decisions begin in the order of their numbers, and those with gates run one
// at a time. One with a gate begins once all members have entered it (Gates),
// and the others have received what this rank has sent about gates so far.
// There is no I/O, thread or clock.
class DecisionQueue {
 public:
  struct Options {
    int rank = 0;
    // See Negotiator::Options.
    std::function<std::optional<uint32_t>(const Decision&)> at_gate = {};
    bool blocks_before_relaying = false;
  };
  // `tree` and `membership` must outlive this.
  DecisionQueue(Options options, const TreePosition& tree,
                const Membership& membership);

  // Opens the gate of a decision for the current members of its process set. If
  // this rank is a member, it meets the others before it carries the decision
  // out; if not, it may have to relay. `counts_on_waiting`: see Gates::Open.
  void OpenGate(Decision& decision, bool counts_on_waiting = false);
  void Push(Decision decision) { decisions_.push_back(std::move(decision)); }

  // Enters the gate of the next decision, if it has one that this rank has not
  // entered, and nothing is being executed.
  enum class Arrival {
    kNone,
    kAtGate,
    kTooLate,  // it cannot take part, but others may have begun
  };
  Arrival ComeToGate(int64_t now_ns);

  // See Negotiator.
  bool CanBegin(uint64_t delivered) const;
  std::optional<Decision> Begin(uint64_t delivered);
  // The decision with a gate that began last has ended. Returns its name.
  const std::string& OnDone();

  // The world is aborted: no gate is entered any more. Decisions with gates are
  // dropped, except those that others may already be in.
  void Abandon();

  // News about gates from a neighbour; see Gates::OnReport and OnMessage.
  void OnReport(int from, std::optional<uint64_t> waits_after) {
    gates_.OnReport(from, waits_after);
  }
  absl::Status OnMessage(int from, const wire::Message& message);
  // Adds the news for a neighbour to a message, if there are any.
  void AddNews(int to, wire::Message& message) {
    gates_.TakeOutgoing(to, *message.mutable_gates());
  }
  // `number` is the message's number, as `delivered` counts.
  void OnSend(const wire::Message& message, uint64_t number);

  // The next decision; null: there is none.
  const Decision* next() const {
    return decisions_.empty() ? nullptr : &decisions_.front();
  }
  bool runs() const { return running_; }
  // Nothing is left to do.
  bool idle() const { return decisions_.empty() && !running_; }
  // The last decision has begun: all ranks have left.
  bool shut_down() const { return shut_down_; }
  // The neighbours behind which a member is missing at the next decision's
  // gate.
  std::vector<int> Missing() const {
    return gates_.Missing(decisions_.front().number);
  }

 private:
  // Which message contains news about which gate, until it is delivered.
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
  bool running_ = false;      // a decision with a gate is running
  std::string running_name_;  // its first operation
  bool shut_down_ = false;
  std::vector<Told> told_;
};

}  // namespace hvdlite::negotiation
