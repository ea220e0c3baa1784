// SimWorld: the Negotiators of many ranks in one thread.
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

// Each rank is a real Negotiator, and what a coordinator does with it. Who
// moves next is the caller's choice:
//
//   in turn       Settle()
//   at random     Step(random), Settle(random)
//   exhaustively  Explorer: all orders within a bound, and one fault
//   damaged       negotiator_fuzz: messages are changed, repeated and made up
//
// An operation's way: Submit() gives it to the rank's Negotiator and puts what
// that has to say on links, as bytes. Deliver() hands the first message of a
// link to its receiver, and puts the answer on links in turn. Begin() has a
// rank plan, come to a gate, and begin what is decided once it can; done() has
// that from then on. Finish() ends it: it is pending no more.
//
// Time stands still unless it is advanced. What must never happen throws a
// Violation: a refused message, an operation that ends twice, a batch that is
// not the same on all its ranks.
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
    // A link is a ring of so many cells: what does not fit stays with the
    // sender, who has to come back to it (Push).
    int64_t ring_cells = int64_t{1} << 40;
    // What stays with the sender counts as delivered: a rule is broken.
    bool blocks_with_backlog = false;
    // Ranks say what they have to say whenever something has happened to them,
    // not only in Serve().
    bool speaks_at_once = true;
  };
  SimWorld(std::vector<int> host_of_rank, Options options);
  SimWorld(const WorldShape& shape, negotiation::Negotiator::Options options);
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;

  int size() const { return static_cast<int>(ranks_.size()); }
  negotiation::Negotiator& operator[](int rank) { return *at(rank).negotiator; }

  // ---- What programs do.
  void Submit(int rank, const Request& request, bool absent = false,
              uint32_t step = 0);
  void SubmitEverywhere(const Request& request);
  void MarkUrgent(int rank, const std::string& name);
  void SubmitUrgently(int rank, const Request& request) {
    Submit(rank, request);
    MarkUrgent(rank, request.name);
  }
  void WaitForAll(int rank);  // that it has submitted
  // These ranks, by default all, submit it and wait for it, until it has ended.
  void Run(const Request& request, std::vector<int> ranks = {});
  // In random order, with random moves and `also` in between; those that wait
  // do so at once or once all is submitted. Then everything settles.
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
  // The same, of a message that may have come from nowhere.
  void Deliver(Link link, const std::string& bytes);
  std::optional<Decision> Begin(int rank);
  bool MayBegin(int rank) const;
  void Finish(int rank);
  // What a coordinator does whenever it has looked at its messages.
  void Serve(int rank);
  // The rank neither receives nor acts any more.
  void Stop(int rank) { at(rank).stopped = true; }
  void Resume(int rank) { at(rank).stopped = false; }

  // Of links with few cells: the sender fills the ring; the receiver takes all
  // that is there, and perhaps the beginning of a message.
  bool CanPush(Link link) const;
  bool CanRead(Link link) const;
  bool HasLink(Link link) const { return links_.contains(link); }
  int64_t Push(Link link);  // returns the cells that have been written, so far
  int64_t Read(Link link);  // ... read

  // ---- Schedulers. One message of a random link is delivered, or a random
  // rank carries something out; false if there is nothing to do.
  bool Step(std::mt19937& random);
  void Settle(std::mt19937& random);  // until nothing moves
  void Settle();
  bool DeliverOneOfEachLink();
  void DeliverAll();
  // Begins and finishes it.
  bool CarryOut(int rank);
  // All come to the gates of what is decided, and this rank begins what is
  // behind it, without an end; false if it cannot.
  bool BeginAfterAll(int rank);

  // ---- Time.
  int64_t now_ns() const { return now_ns_; }
  void Advance(absl::Duration by);
  // In steps, in which looks and answers may come.
  void AdvanceBySteps(absl::Duration by, absl::Duration step);
  // Ranks learn of it when they are served.
  void PassUnnoticed(absl::Duration by) {
    now_ns_ += absl::ToInt64Nanoseconds(by);
  }

  // ---- What has happened. What a rank has begun, in order; batches list
  // names.
  struct Done {
    Decision::Kind kind;
    uint64_t number;
    std::vector<std::string> tensors;  // "(x)": took part with nothing
    std::vector<std::string> absent;
    std::string message;
    int participants;
    int last_joined;
    std::vector<int> last_ranks;       // of each tensor
    std::vector<int64_t> lateness_us;  // the same
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
  // A message cannot be read, or was refused; by default, a Violation. Where
  // this is set, messages need not be true.
  std::function<void(int rank, const std::string& why)> on_refused;

  // ---- What ranks are asked. As Negotiator::Options::at_gate; by default, 0.
  std::function<std::optional<uint32_t>(int rank, const Decision& decision)>
      at_gate;
  // What a rank says of itself; nullopt: nothing, for now. And what can be seen
  // of it from outside.
  std::function<std::optional<negotiation::Explanation>(int rank)> explain;
  std::function<std::optional<negotiation::ProcessSample>(int rank)> look_at;

 private:
  static constexpr int64_t kCellBytes = 56;

  struct Rank {
    std::unique_ptr<negotiation::Negotiator> negotiator;
    std::map<negotiation::Token, std::string> pending;
    std::vector<Done> done;
    std::vector<negotiation::Token> ending;  // with what has begun
    bool stopped = false;
    uint64_t sent = 0;  // messages
  };
  struct Message {
    int64_t last_cell = 0;  // counted from the beginning of the link
    uint64_t number = 0;    // among those of its sender
    std::string bytes;
  };
  struct Ring {
    int64_t produced = 0;
    int64_t written = 0;
    int64_t read = 0;
    std::deque<Message> messages;  // that have not been read
  };

  Rank& at(int rank) { return ranks_[static_cast<size_t>(rank)]; }
  const Rank& at(int rank) const { return ranks_[static_cast<size_t>(rank)]; }
  void Touched(int rank) {
    if (options_.speaks_at_once) Speak(rank);
  }
  void Speak(int rank);
  std::string PopFront(Ring& ring);
  void CheckBatch(const Decision& decision, const Done& done);
  // How many of its messages are with their receivers.
  uint64_t Delivered(int rank) const;

  const Options options_;
  std::vector<Rank> ranks_;
  std::map<Link, Ring> links_;
  std::map<uint64_t, std::string> batches_;  // by number
  negotiation::Token next_token_ = 1;
  int sets_ = 0;
  int64_t now_ns_ = 1'000'000'000;
};

}  // namespace hvdlite::testing
