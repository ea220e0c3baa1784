// SimWorld has the Negotiators of many ranks in one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "negotiation/protocol/negotiator.h"

namespace hvdlite::testing {

struct WorldShape {
  int ranks = 1;
  int ranks_per_host = 1;
  int arity = 2;  // of the tree
};
std::string NameOf(const WorldShape& shape);  // "4Ranks2PerHostArity8"

// Each rank is a real Negotiator, with the actions of a coordinator. The caller
// chooses which rank acts next:
//
//   in turn       Settle()
//   at random     Step(random), Settle(random)
//   exhaustively  Explorer: all orders within a bound, and one fault
//   damaged       negotiator_fuzz: messages are changed, repeated and made up
//
// The path of an operation: Submit() passes it to the rank's Negotiator, and
// puts the resulting messages on links, as bytes. Deliver() passes the first
// message of a link to its receiver, and puts the answers on links. Begin()
// makes a rank plan, enter a gate, and begin a decision once it can; from then
// on done() contains it. Finish() ends it: it is not pending any more.
//
// Time stands still unless it is advanced. A forbidden event throws a
// Violation: a refused message, an operation that ends twice, or a bucket that
// differs among its ranks.
class SimWorld {
 public:
  using Decision = negotiation::Decision;
  using Request = negotiation::Request;
  using ProcessSetId = negotiation::ProcessSetId;
  using Link = std::pair<int, int>;  // from, to
  class Violation : public std::logic_error {
    using std::logic_error::logic_error;
  };

  struct Options {
    negotiation::Negotiator::Options negotiator = {};
    // The cells of a link's ring. Messages that do not fit stay with the sender
    // until it calls Push.
    int64_t ring_cells = int64_t{1} << 40;
    // Messages that stay with the sender count as delivered: this breaks a
    // rule.
    bool blocks_with_backlog = false;
    // Ranks send messages whenever something has happened to them, not only in
    // Serve().
    bool speaks_at_once = true;
  };
  SimWorld(std::vector<int> host_of_rank, Options options);
  SimWorld(const WorldShape& shape, negotiation::Negotiator::Options options);
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;

  int size() const { return static_cast<int>(ranks_.size()); }
  negotiation::Negotiator& operator[](int rank) { return *at(rank).negotiator; }

  // ---- Calls of programs.
  void Submit(int rank, const Request& request, bool absent = false,
              uint32_t step = 0);
  void SubmitEverywhere(const Request& request);
  void MarkUrgent(int rank, const std::string& name);
  void SubmitUrgently(int rank, const Request& request) {
    Submit(rank, request);
    MarkUrgent(rank, request.name);
  }
  void WaitForAll(int rank);  // for all that it has submitted
  // These ranks, by default all, submit the operation and wait until it has
  // ended.
  void Run(const Request& request, std::vector<int> ranks = {});
  // Submits in random order, with random moves and `also` in between. Waiting
  // ranks wait immediately, or once all is submitted. Then everything settles.
  struct Submission {
    int rank;
    Request request;
    bool waits = true;
    bool absent = false;
    uint32_t step = 0;
  };
  void RunShuffled(std::vector<Submission> submissions, std::mt19937& random,
                   const std::function<void()>& also = {});
  ProcessSetId AddProcessSet(std::vector<int> members);
  void SubmitRemoval(ProcessSetId set, const std::string& name = "remove");
  void Join(int rank);
  void Release(int rank, const std::string& name) {
    at(rank).negotiator->Release(name);
    Touched(rank);
  }
  void Leave(int rank, const std::string& reason) {
    at(rank).negotiator->Leave(reason);
    Touched(rank);
  }
  void Abort(int rank, const std::string& reason) {
    at(rank).negotiator->Abort(reason);
    Touched(rank);
  }
  bool IsPending(int rank, const std::string& name) const;
  bool IsIdle(int rank) const { return at(rank).pending.empty(); }

  // ---- Moves.
  std::vector<Link> BusyLinks() const;  // with messages that can be delivered
  std::string& Front(Link link) { return links_[link].messages.front().bytes; }
  void Deliver(Link link);
  // The same for a message that may not have been sent.
  void Deliver(Link link, const std::string& bytes);
  std::optional<Decision> Begin(int rank);
  bool MayBegin(int rank) const;
  void Finish(int rank);
  // What a coordinator does whenever it has read its messages.
  void Serve(int rank);
  // The rank neither receives nor acts any more.
  void Stop(int rank) { at(rank).stopped = true; }
  void Resume(int rank) { at(rank).stopped = false; }

  // For links with few cells: the sender fills the ring, and the receiver reads
  // everything in it, perhaps with the beginning of a message.
  bool CanPush(Link link) const;
  bool CanRead(Link link) const;
  bool HasLink(Link link) const { return links_.contains(link); }
  int64_t Push(Link link);  // returns the cells written so far
  int64_t Read(Link link);  // returns the cells read so far

  // ---- Schedulers.
  // Delivers one message of a random link, or lets a random rank carry
  // something out; false if there is nothing to do.
  bool Step(std::mt19937& random);
  void Settle(std::mt19937& random);  // until nothing moves
  void Settle();
  bool DeliverOneOfEachLink();
  void DeliverAll();
  // Begins and finishes the rank's next decision.
  bool CarryOut(int rank);
  // All ranks enter the gates of the decisions, and this rank begins what
  // follows, without finishing it; false if it cannot.
  bool BeginAfterAll(int rank);

  // ---- Time.
  int64_t now_ns() const { return now_ns_; }
  void Advance(absl::Duration by);
  // Advances in steps, so that looks and answers can happen in between.
  void AdvanceBySteps(absl::Duration by, absl::Duration step);
  // Ranks learn the new time when they are served.
  void PassUnnoticed(absl::Duration by) {
    now_ns_ += absl::ToInt64Nanoseconds(by);
  }

  // ---- What has happened.
  // The decisions that a rank has begun, in order; for buckets, the names.
  struct Done {
    Decision::Kind kind;
    uint64_t number;
    std::vector<std::string> tensors;  // "(x)": took part without data
    std::vector<std::string> absent;
    std::string message;
    int participants;
    int last_joined;
    std::vector<int> last_ranks;       // by tensor
    std::vector<int64_t> lateness_us;  // by tensor
    uint32_t next_step;
    ProcessSetId process_set;
    friend bool operator==(const Done&, const Done&) = default;
  };
  const std::vector<Done>& done(int rank) const { return at(rank).done; }
  void ForgetDone();
  std::vector<std::string> warnings;  // of all ranks
  int64_t bytes_sent = 0;
  std::function<void(const std::string& bytes)> on_send;
  std::function<void(int rank, const negotiation::wire::Message&)> on_delivered;
  // Called if a message cannot be read, or was refused; by default, this is a
  // Violation. If it is set, messages may be wrong.
  std::function<void(int rank, const std::string& why)> on_refused;

  // ---- Questions to ranks. See Negotiator::Options::at_gate; by default, 0.
  std::function<std::optional<uint32_t>(int rank, const Decision& decision)>
      at_gate;
  // A rank's explanation of itself; nullopt: none yet. And what can be seen of
  // it from outside.
  std::function<std::optional<negotiation::Explanation>(int rank)> explain;
  std::function<std::optional<negotiation::ProcessSample>(int rank)> look_at;

 private:
  static constexpr int64_t kCellBytes = 56;

  struct Rank {
    std::unique_ptr<negotiation::Negotiator> negotiator;
    std::map<negotiation::Token, std::string> pending;
    std::vector<Done> done;
    std::vector<negotiation::Token> ending;  // end with the running decision
    bool stopped = false;
    uint64_t sent = 0;  // messages
  };
  struct Message {
    int64_t last_cell = 0;  // counted from the link's beginning
    uint64_t number = 0;    // among its sender's messages
    std::string bytes;
  };
  struct Ring {
    int64_t produced = 0;
    int64_t written = 0;
    int64_t read = 0;
    std::deque<Message> messages;  // not read yet
  };

  Rank& at(int rank) { return ranks_[static_cast<size_t>(rank)]; }
  const Rank& at(int rank) const { return ranks_[static_cast<size_t>(rank)]; }
  void Touched(int rank) {
    if (options_.speaks_at_once) Speak(rank);
  }
  void Speak(int rank);
  std::string PopFront(Ring& ring);
  void CheckBucket(const Decision& decision, const Done& done);
  // How many of its messages have reached their receivers.
  uint64_t Delivered(int rank) const;

  const Options options_;
  std::vector<Rank> ranks_;
  std::map<Link, Ring> links_;
  std::map<uint64_t, std::string> buckets_;  // by number
  negotiation::Token next_token_ = 1;
  int sets_ = 0;
  int64_t now_ns_ = 1'000'000'000;
};

}  // namespace hvdlite::testing
