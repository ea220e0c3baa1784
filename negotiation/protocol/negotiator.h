// Negotiator: the protocol by which the ranks agree on what to do next.
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

// One rank's state machine. Inputs are what this rank submits, what it receives
// and the time; outputs are messages to send and decisions to execute. The
// same inputs give the same outputs: no I/O, threads or clock.
//
// Readiness goes up a tree: a rank tells its parent of a tensor once all ranks
// of its subtree have submitted it. The root plans batches (DecisionMaker) and
// numbers every decision; decisions come down the tree. A request is announced
// in full the first two times, and by a small id from then on: what is used
// once only would fill the tables of long runs. A name has several ids where it
// stands for different requests in turn. Ids that have not been used for a
// while are forgotten by a decision, and used again once every rank has heard.
//
// A rank holds reports back until they are worth a batch. Who learns that
// somebody waits for an operation that is not ready below it, asks its children
// for what they coalesce, and so on down the tree.
//
// Operations of a process set wait for its members alone; ranks outside of it
// pass their readiness on. A rank that has joined (it has no operation pending
// by then) is not waited for: its parent counts it as ready for everything.
//
// Its parts: DecisionQueue keeps what is decided until this rank carries it
// out; Liveness looks after ranks that are missing, silent or leaving.
class Negotiator {
 public:
  struct Options {
    int rank = 0;
    // Of all ranks; negotiators of one process may share it. Not null.
    std::shared_ptr<const WorldLayout> layout =
        std::make_shared<WorldLayout>(std::vector<int>{0});
    int tree_arity = 8;  // from 1 to kMaxTreeArity
    int64_t fusion_threshold_bytes = int64_t{64} << 20;
    int64_t min_batch_bytes = int64_t{4} << 20;
    // As IdPool's; above what a training step has of tensors.
    uint64_t max_idle_uses = 32768;
    absl::Duration stall_warning = absl::Seconds(60);
    absl::Duration stall_failure = absl::InfiniteDuration();
    Heartbeat::Options heartbeat;
    // This rank explains itself and looks at others when asked to.
    bool explains = false;
    // The process of each rank, for messages; null: not known.
    std::shared_ptr<const std::vector<int>> pids = nullptr;
    // Called when this rank is about to come to the gate of a decision, with
    // nothing before it left to do: the rank's GateFlags, or nullopt if it is
    // not to come yet (it is asked again). By default: 0.
    std::function<std::optional<uint32_t>(const Decision&)> at_gate;
    // As if Gates::MayBlock were always true: only to see what becomes of ranks
    // without that rule.
    bool blocks_before_relaying = false;
  };
  explicit Negotiator(const Options& options);
  Negotiator(const Negotiator&) = delete;
  Negotiator& operator=(const Negotiator&) = delete;

  // Sets the time for the inputs that follow, and looks for stalls and for
  // neighbours that give no sign of life.
  void Advance(int64_t now_ns);

  // This rank has submitted an operation (or a join). No operation of the same
  // name is pending on it. `hint`, if there is one, is filled in when it can
  // be; given again with the same request, it spares the search for it.
  // `submitted_ns`: when that was; by default, now. `step`: see Operation; no
  // part of what an id stands for.
  void Submit(const Request& request, bool absent, Token token,
              SlotHint* hint = nullptr,
              std::optional<int64_t> submitted_ns = std::nullopt,
              uint32_t step = 0);

  // Answers what others want to know of processes, if anything: `self` tells
  // what this rank is doing, which they wait for, and `look` what another one's
  // process does, which does not answer. Nullopt: not yet, and not at all.
  void Explain(absl::FunctionRef<std::optional<Explanation>()> self,
               absl::FunctionRef<std::optional<ProcessSample>(int rank)> look);
  // Somebody wants to know what all ranks are doing: the root warns of it.
  void AskEverybody();

  // Somebody on this rank waits for it. Ignored if it is not pending.
  void MarkUrgent(const std::string& name);

  // This rank has no use for the name any more, as far as it knows: all ranks
  // forget its ids. Told along with the next report.
  void Release(const std::string& name);

  // Whether a thread of this rank does nothing but take in messages and carry
  // out decisions: the others may count on it at the next gate. Ranks that
  // coalesce what somebody here waits for are asked for it unless that has only
  // begun: a moment later they may have sent it unasked.
  enum class Waits { kNot, kBegins, kLonger };
  void set_waits(Waits waits) {
    if ((waits == Waits::kBegins) == asks()) Touch();
    waits_ = waits;
  }

  // This rank submits nothing more. Only the first call counts.
  void Leave(const std::string& reason);

  // This rank cannot go on: the world is to be aborted everywhere.
  void Abort(const std::string& reason);

  // The messages by which the neighbours learn that the world is to be aborted,
  // whatever this rank has sent before: for one whose state is not to be relied
  // on. Uses nothing that changes.
  struct Outgoing {
    int to = 0;
    wire::Message message;
  };
  std::vector<Outgoing> AbortMessages(const std::string& reason) const;

  // A message arrived. Errors: Internal for one that breaks the protocol.
  absl::Status OnMessage(int from, const wire::Message& message);

  // The decision with a gate that NextDecision returned last has been carried
  // out.
  void OnDone() {
    Touch();
    liveness_.OnDone(queue_.OnDone());
  }

  // At the root: decides what can be decided now. Comes to the gate of the next
  // decision, if it has one and nothing is being executed. False: nothing has
  // happened since the last TakeOutgoing(), so there is nothing to plan, to
  // send or to warn of. Call it whenever something may have arrived, also while
  // a batch runs (other process sets need not wait for it), and send what
  // TakeOutgoing() has then before NextDecision(): whoever begins may not come
  // back to sending soon.
  bool Plan();

  // Whether there is a decision to execute now: none with a gate is being
  // executed, and all members have come to the gate of the next, if it has
  // one. `delivered`: that many of the messages that TakeOutgoing() has handed
  // out, and perhaps more, are with their receivers. What this rank has told
  // others of the gate must be among them, since carrying the decision out may
  // keep it from sending.
  bool CanBegin(uint64_t delivered = kAllDelivered) const {
    return queue_.CanBegin(delivered);
  }
  static constexpr uint64_t kAllDelivered = ~uint64_t{0};

  // The next decision if it can be executed now.
  std::optional<Decision> NextDecision(uint64_t delivered = kAllDelivered);

  // Why the world is aborted, once this rank has heard of it. The decision is
  // executed in its turn; who waits for other ranks need not wait for that.
  const std::optional<std::string>& abort_reason() const {
    return abort_reason_;
  }

  // What to send since the last call; at most one message per receiver.
  std::vector<Outgoing> TakeOutgoing();

  // How many messages TakeOutgoing() has returned so far.
  uint64_t handed_out() const { return handed_out_; }

  // Warnings to log since the last call (stalls, at the root).
  std::vector<std::string> TakeWarnings() { return liveness_.TakeWarnings(); }

  // Somebody waits for this rank or those below it: what is submitted should be
  // taken in at once.
  bool is_awaited() const { return asked_ || !awaited_.empty(); }

  // Of what is ready below and not worth a report yet.
  int64_t coalesced_bytes() const { return report_.coalesced_bytes(); }

  // Decisions are to be executed, or operations of this rank are pending.
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
  // Nothing keeps this rank from coming to the next gate, with no flags.
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
  // Of ids that travel as runs; false for one that nothing is known of.
  bool VisitKnownIds(const NumberField& ids,
                     absl::FunctionRef<bool(Registration&)> visit);
  // Who of a source submitted last, and when.
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
  // Those that have arrived by id become a variant.
  void DescribeById(TensorSlot& slot);
  // Passes the slot on once all sources that are to take part have arrived.
  void PassOnIfReady(TensorSlot& slot);
  void Urgent(TensorSlot& slot);
  // The children that have not submitted what somebody waits for, as sources.
  uint64_t AwaitedChildren() const;
  void OnJoined(int rank);

  // ---- Ids that are forgotten (negotiator_ids.cc).
  void Release(Registration& registration);
  // By the decision that was applied last.
  absl::Status Forget(const std::vector<uint32_t>& ids);
  absl::Status ApplyForgotten(const wire::Forgotten& forgotten);
  // A source uses no ids any more that were forgotten by then.
  absl::Status OnForgotten(int source, uint64_t number);
  // Frees what nobody below uses any more, and says so.
  void FreeForgotten();

  // ---- What the watch over the ranks looks at, and finds.
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
  // Nothing more is to come of anybody.
  bool over() const { return queue_.shut_down() || abort_reason_.has_value(); }
  void BreakWorld(const std::string& reason);
  // The same, where the root's answer would not come: this rank and those below
  // do not wait for it.
  void EndSubtree(const std::string& reason);

  // ---- Decisions, on their way down (negotiator_decisions.cc).
  void ComeToGate();
  void Decide(wire::Decision decision);
  absl::Status Apply(const wire::Decision& decision);
  absl::Status ApplyBatch(const wire::Batch& batch, Decision decision);
  absl::Status Register(
      const google::protobuf::RepeatedPtrField<wire::Registration>& registered);
  absl::Status ApplyFailure(const wire::Failure& failure, Decision decision);
  absl::Status ApplyAdded(const wire::AddedProcessSet& added,
                          Decision decision);
  absl::Status ApplyRemoved(const wire::RemovedProcessSet& removed,
                            Decision decision);
  absl::Status ApplyDeparture(const wire::Departure& departure,
                              Decision decision);
  // Ends the instance of `name`, if this rank knows of it; returns this rank's
  // operation.
  std::optional<Token> EndInstance(const std::string& name);
  std::optional<Token> EndInstance(TensorSlot& slot);
  // Tells of this rank's join once nothing of it is pending.
  void JoinIfIdle();
  void AbandonPending();

  const Options options_;
  const TreePosition tree_;
  int64_t now_ns_ = 0;
  Membership membership_;
  TensorTable table_;
  // By which decisions which ids were forgotten, that ranks below may not have
  // heard of; and of each child, how far all ranks behind it have.
  struct Forgotten {
    uint64_t number = 0;
    std::vector<uint32_t> ids;
  };
  std::deque<Forgotten> forgotten_;
  std::vector<uint64_t> forgotten_below_;
  int pending_ = 0;  // operations of this rank without a decision
  std::optional<Token> join_token_;
  int64_t join_submitted_ns_ = 0;
  bool abandoned_ = false;  // a rank left or the world broke
  bool broken_ = false;     // at the root: decided
  std::optional<std::string> abort_reason_;
  uint64_t last_decision_ = 0;
  DecisionQueue queue_;      // of what is to be executed
  uint64_t handed_out_ = 0;  // messages
  bool cut_off_ = false;  // whatever the parent may still say does not count
  ReportDraft report_;    // to the parent
  // Urgent, and not passed on yet.
  absl::flat_hash_set<const TensorSlot*> awaited_;
  // Since the last decision: the parent has asked for reports, and this rank
  // these children, as sources.
  bool asked_ = false;
  uint64_t asked_children_ = 0;
  wire::Directive directive_;  // to the children
  Waits waits_ = Waits::kNot;
  // Something has happened since TakeOutgoing(); nothing since Plan().
  bool touched_ = true;
  bool planned_ = false;

  DecisionMaker decision_maker_;  // used at the root alone
  Liveness liveness_;             // looks at most of the above
};

}  // namespace hvdlite::negotiation
