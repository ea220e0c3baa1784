// Negotiator is the protocol by which the ranks agree on what to do next.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "negotiation/protocol/decision_maker.h"
#include "negotiation/protocol/decision_queue.h"
#include "negotiation/protocol/liveness.h"
#include "negotiation/protocol/membership.h"
#include "negotiation/protocol/messages.pb.h"
#include "negotiation/protocol/process_look.h"
#include "negotiation/protocol/request.h"
#include "negotiation/protocol/tensor_table.h"
#include "negotiation/protocol/tree.h"
#include "negotiation/protocol/wire_format.h"

namespace hvdlite::negotiation {

// The state machine of one rank. Its inputs are what this rank submits, what it
// receives, and the time. Its outputs are messages to send and decisions to
// execute. The same inputs give the same outputs: there is no I/O, thread or
// clock.
//
// Readiness goes up a tree: a rank reports a tensor to its parent once all
// ranks of its subtree have submitted it. The root plans buckets
// (DecisionMaker) and numbers every decision; decisions go down the tree. A
// request is announced in full the first two times, and by a small id from then
// on. (Ids for requests that are used once would fill the tables of long runs.)
// A name has several ids if different requests use it in turn. A decision
// forgets ids that have not been used for a while. They are used again once
// every rank knows the decision.
//
// A rank holds reports back until they are worth a bucket. If a rank learns
// that a thread waits for an operation, it asks the children that are not ready
// for their reports. They ask their children, and so on.
//
// Operations of a process set wait only for its members; ranks outside of it
// pass their readiness on. A rank that has joined has no pending operation and
// is not waited for: its parent counts it as ready for everything.
//
// DecisionQueue keeps decisions until this rank carries them out. Liveness
// handles ranks that are missing, silent or leaving.
class Negotiator {
 public:
  struct Options {
    int rank = 0;
    // The layout of all ranks; negotiators of one process may share it. Not
    // null.
    std::shared_ptr<const WorldLayout> layout =
        std::make_shared<WorldLayout>(std::vector<int>{0});
    int tree_arity = 8;  // from 1 to kMaxTreeArity
    int64_t fusion_threshold_bytes = int64_t{64} << 20;
    int64_t min_batch_bytes = int64_t{4} << 20;
    // See IdPool. It is larger than the number of tensors in a training step.
    uint64_t max_idle_uses = 32768;
    absl::Duration stall_warning = absl::Seconds(60);
    absl::Duration stall_failure = absl::InfiniteDuration();
    Heartbeat::Options heartbeat;
    // This rank explains itself and looks at others when asked to.
    bool explains = false;
    // The process id of each rank, for messages; null: not known.
    std::shared_ptr<const std::vector<int>> pids = nullptr;
    // Called when this rank is about to enter the gate of a decision, and has
    // nothing left to do before it. Returns the rank's GateFlags, or nullopt to
    // be called again later. By default: 0.
    std::function<std::optional<uint32_t>(const Decision&)> at_gate;
    // For tests: treats Gates::MayBlock as always true, to show what happens to
    // ranks without that rule.
    bool blocks_before_relaying = false;
  };
  explicit Negotiator(const Options& options);
  Negotiator(const Negotiator&) = delete;
  Negotiator& operator=(const Negotiator&) = delete;

  // Sets the time for the following inputs, and checks for stalls and for
  // silent neighbours.
  void Advance(int64_t now_ns);

  // This rank has submitted an operation (or a join). No operation of the same
  // name may be pending on it. `hint`, if not null, is filled in when possible;
  // passing it again with the same request saves the search. `submitted_ns`:
  // the time of the submission; by default, now. `step`: see Operation; an id
  // does not include it.
  void Submit(const Request& request, bool absent, Token token,
              SlotHint* hint = nullptr,
              std::optional<int64_t> submitted_ns = std::nullopt,
              uint32_t step = 0);

  // Answers questions about processes. `self` reports what this rank is doing,
  // if other ranks wait for it. `look` reports on the process of another rank
  // that does not answer. Nullopt from `self`: not yet; from `look`: not
  // available.
  void Explain(absl::FunctionRef<std::optional<Explanation>()> self,
               absl::FunctionRef<std::optional<ProcessSample>(int rank)> look);
  // A user wants to know what all ranks are doing: the root logs it as a
  // warning.
  void AskEverybody();

  // A thread of this rank waits for the operation. Ignored if it is not
  // pending.
  void MarkUrgent(const std::string& name);

  // As far as this rank knows, it does not use the name any more: all ranks may
  // forget its ids. Sent along with the next report.
  void Release(const std::string& name);

  // Whether a thread of this rank only receives messages and carries out
  // decisions. With kBegins or kLonger, the other ranks may count this rank as
  // arrived at the next gate. With kLonger, ranks that hold back reports for
  // which this rank waits are asked for them. With kBegins they are not: they
  // may send them in a moment anyway.
  enum class Waits { kNot, kBegins, kLonger };
  void set_waits(Waits waits) {
    if ((waits == Waits::kBegins) == asks()) Touch();
    waits_ = waits;
  }

  // This rank submits nothing more. Only the first call counts.
  void Leave(const std::string& reason);

  // This rank cannot continue: the world is to be aborted on all ranks.
  void Abort(const std::string& reason);

  // The messages that inform the neighbours that the world is to be aborted,
  // whatever this rank has sent before. They can be made even if the state is
  // damaged: nothing that changes is used.
  struct Outgoing {
    int to = 0;
    wire::Message message;
  };
  std::vector<Outgoing> AbortMessages(const std::string& reason) const;

  // Handles a message. Errors: Internal for one that violates the protocol.
  absl::Status OnMessage(int from, const wire::Message& message);

  // The decision with a gate that NextDecision last returned has been carried
  // out.
  void OnDone() {
    Touch();
    liveness_.OnDone(queue_.OnDone());
  }

  // At the root, decides what can be decided now. On every rank, enters the
  // gate of the next decision, if it has one and nothing is being executed.
  // False: nothing has happened since the last TakeOutgoing(), so there is
  // nothing to plan, send or log. Call it whenever something may have arrived,
  // also while a bucket runs, since other process sets need not wait for it.
  // Send the result of TakeOutgoing() before calling NextDecision(): executing
  // a decision may prevent sending for a long time.
  bool Plan();

  // Whether there is a decision to execute now. No decision with a gate may be
  // in progress, and all members must have entered the gate of the next one, if
  // it has one. `delivered`: at least this many messages of TakeOutgoing() have
  // reached their receivers. They must include all that this rank has sent
  // about the gate, since carrying the decision out may prevent sending.
  bool CanBegin(uint64_t delivered = kAllDelivered) const {
    return queue_.CanBegin(delivered);
  }
  static constexpr uint64_t kAllDelivered = ~uint64_t{0};

  // The next decision, if it can be executed now.
  std::optional<Decision> NextDecision(uint64_t delivered = kAllDelivered);

  // Why the world is aborted, once this rank knows. The decision is executed in
  // its turn, but a thread that waits for other ranks can stop waiting now.
  const std::optional<std::string>& abort_reason() const {
    return abort_reason_;
  }

  // The messages to send since the last call; at most one for each receiver.
  std::vector<Outgoing> TakeOutgoing();

  // How many messages TakeOutgoing() has returned so far.
  uint64_t handed_out() const { return handed_out_; }

  // Warnings to log since the last call. The root warns of stalls.
  std::vector<std::string> TakeWarnings() { return liveness_.TakeWarnings(); }

  // Another rank waits for this rank or the ranks below it: take submissions in
  // immediately.
  bool is_awaited() const { return asked_ || !awaited_.empty(); }

  // The bytes that are ready below and not worth a report yet.
  int64_t coalesced_bytes() const { return report_.coalesced_bytes(); }

  // There are decisions to execute, or operations of this rank are pending.
  bool has_work() const {
    return queue_.next() != nullptr || waits_for_decisions();
  }

  // When Advance should be called at the latest; nullopt: no need.
  std::optional<int64_t> next_deadline_ns() const {
    return liveness_.next_deadline_ns(situation());
  }

 private:
  // Sources: this rank, and its children.
  static constexpr int kSelf = 0;
  static constexpr int kFirstChild = 1;

  void Touch() {
    touched_ = true;
    planned_ = false;
  }
  // This rank will enter the next gate immediately, with no flags.
  bool WillComeAtOnce() const;
  bool asks() const { return waits_ != Waits::kBegins; }
  bool is_root() const { return tree_.parent < 0; }
  RankRuns RanksOf(int source, ProcessSetId process_set) const;
  int SourceOf(int rank) const;  // -1 if not a child

  // ---- Readiness, on its way up (negotiator.cc).
  absl::Status OnReport(int source, const wire::Report& report);
  absl::Status OnReady(int source, const wire::Ready& ready, bool present);
  absl::Status OnAnnounced(int source, const wire::Report& report);
  absl::Status OnDirective(const wire::Directive& directive);
  // Visits ids that are sent as runs; false if one is unknown.
  bool VisitKnownIds(const NumberField& ids,
                     absl::FunctionRef<bool(Registration&)> visit);
  // The rank of a source that submitted last, and when.
  struct Last {
    int rank = 0;
    int64_t submitted_ns = 0;
  };
  void Arrive(TensorSlot& slot, int source, bool present, const Last& last);
  void AddVariant(TensorSlot& slot, const Request& request, uint32_t step,
                  const RankRuns& ranks);
  // A source agrees with a registered request.
  void AddById(TensorSlot& slot, const Registration& registration, int source,
               uint32_t step);
  // Turns what has arrived by id into a variant.
  void DescribeById(TensorSlot& slot);
  // Passes the slot on once all sources that take part have arrived.
  void PassOnIfReady(TensorSlot& slot);
  void Urgent(TensorSlot& slot);
  // The children, as sources, that have not submitted what a thread waits for.
  uint64_t AwaitedChildren() const;
  void OnJoined(int rank);

  // ---- Ids that are forgotten (negotiator_ids.cc).
  void Release(Registration& registration);
  // Forgets ids because of the decision that was applied last.
  absl::Status Forget(const std::vector<uint32_t>& ids);
  absl::Status ApplyForgotten(const wire::Forgotten& forgotten);
  // A source does not use any more the ids that were forgotten up to this
  // decision.
  absl::Status OnForgotten(int source, uint64_t number);
  // Frees ids that no rank below uses any more, and reports it.
  void FreeForgotten();

  // ---- What Liveness looks at, and what it finds.
  bool waits_for_decisions() const {
    return pending_ > 0 || join_token_.has_value();
  }
  Liveness::Situation situation() const {
    return {.over = over(),
            .waits = waits_for_decisions(),
            .joining_since_ns = join_token_.has_value()
                                    ? std::optional(join_submitted_ns_)
                                    : std::nullopt};
  }
  // No rank has anything more to send.
  bool over() const { return queue_.shut_down() || abort_reason_.has_value(); }
  void BreakWorld(const std::string& reason);
  // Ends the world for this rank and those below, without waiting for the
  // root's answer, which would not arrive.
  void EndSubtree(const std::string& reason);

  // ---- Decisions, on their way down (negotiator_decisions.cc).
  void ComeToGate();
  void Decide(wire::Decision decision);
  absl::Status Apply(const wire::Decision& decision);
  absl::Status ApplyBucket(const wire::Bucket& bucket, Decision decision);
  absl::Status Register(
      const google::protobuf::RepeatedPtrField<wire::Registration>& registered);
  absl::Status ApplyFailure(const wire::Failure& failure, Decision decision);
  absl::Status ApplyAdded(const wire::AddedProcessSet& added,
                          Decision decision);
  absl::Status ApplyRemoved(const wire::RemovedProcessSet& removed,
                            Decision decision);
  absl::Status ApplyDeparture(const wire::Departure& departure,
                              Decision decision);
  // Ends the instance of `name`, if this rank knows it; returns this rank's
  // operation.
  std::optional<Token> EndInstance(const std::string& name);
  std::optional<Token> EndInstance(TensorSlot& slot);
  // Reports this rank's join once no operation of this rank is pending.
  void JoinIfIdle();
  void AbandonPending();

  const Options options_;
  const TreePosition tree_;
  int64_t now_ns_ = 0;
  Membership membership_;
  TensorTable table_;
  // The ids that decisions have forgotten, as long as some rank below may not
  // know. And for each child, the last such decision that all ranks behind it
  // know.
  struct Forgotten {
    uint64_t number = 0;
    std::vector<uint32_t> ids;
  };
  std::deque<Forgotten> forgotten_;
  std::vector<uint64_t> forgotten_below_;
  int pending_ = 0;  // operations of this rank without a decision
  std::optional<Token> join_token_;
  int64_t join_submitted_ns_ = 0;
  bool abandoned_ = false;  // a rank left, or the world broke
  bool broken_ = false;     // at the root: it is decided
  std::optional<std::string> abort_reason_;
  uint64_t last_decision_ = 0;
  DecisionQueue queue_;      // decisions to execute
  uint64_t handed_out_ = 0;  // messages
  bool cut_off_ = false;     // messages of the parent are ignored
  ReportDraft report_;    // to the parent
  // Urgent slots that are not passed on yet.
  absl::flat_hash_set<const TensorSlot*> awaited_;
  // Since the last decision: whether the parent has asked for reports, and the
  // children, as sources, that this rank has asked.
  bool asked_ = false;
  uint64_t asked_children_ = 0;
  wire::Directive directive_;  // to the children
  Waits waits_ = Waits::kNot;
  // Whether something has happened since TakeOutgoing(), and nothing since
  // Plan().
  bool touched_ = true;
  bool planned_ = false;

  DecisionMaker decision_maker_;  // used only at the root
  Liveness liveness_;             // reads most members above
};

}  // namespace hvdlite::negotiation
