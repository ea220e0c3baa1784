// StallProbe asks all ranks which of them have not submitted what others wait
// for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "negotiation/protocol/membership.h"
#include "negotiation/protocol/messages.pb.h"
#include "negotiation/protocol/process_look.h"
#include "negotiation/protocol/rank_list.h"
#include "negotiation/protocol/tensor_table.h"
#include "negotiation/protocol/tree.h"

namespace hvdlite::negotiation {

// Names under which a probe asks about things that are not operations.
inline constexpr char kJoinName[] = "join()";
inline constexpr char kShutdownName[] = "shutdown()";
// No rank has submitted this: so all ranks are missing, and report what they
// are doing.
inline constexpr char kEverybodyName[] = "what all ranks are doing";

// A stall probe goes down the tree from the root, and the answers come back up.
// This is one rank's part in it. A child that does not answer in time is
// silent, with its whole subtree: its process is stopped, overloaded or gone.
// There is one probe at a time.
//
// An answer does not grow with the number of ranks or operations: ranks are
// sent as runs, and only the lowest few with their last submission.
//
// A missing rank explains itself. The caller makes this explanation, so that it
// is an input. A child on this rank's host that does not answer is examined
// from outside, twice.
//
// There is no I/O, thread or clock.
class StallProbe {
 public:
  struct Options {
    int rank = 0;
    // The answer counts operations that have waited longer than this.
    absl::Duration overdue_after;
    // How long answers may take per level of the tree.
    absl::Duration answer_deadline = absl::Seconds(2);
    // Explanations and looks are available, and are waited for.
    bool explains = false;
  };
  // `tree` and `membership` must outlive this.
  StallProbe(const Options& options, const TreePosition& tree,
             const Membership& membership)
      : options_(options), tree_(tree), membership_(membership) {}

  // This rank submitted the slot's operation.
  void OnSubmit(const TensorSlot& slot);
  // The table is about to forget ids.
  void KeepLastName(TensorTable& table) {
    last_name_ = LastName(table);
    last_id_.reset();
  }
  // This rank has executed a decision; `name` is its first operation.
  void OnDone(const std::string& name, int64_t now_ns) {
    done_name_ = name;
    done_ns_ = now_ns;
  }
  // This rank leaves.
  void OnLeave() { left_ = true; }

  // A probe reached this rank, which collects its own part of the answer.
  void Begin(const wire::Probe& probe, TensorTable& table, int64_t now_ns);
  void OnAnswer(int child_rank, const wire::Answer& answer);

  // Whether this rank has to explain itself; its explanation; and whether a
  // thread of it waits for other ranks meanwhile.
  bool awaits_explanation() const {
    return open_.has_value() && open_->awaits_explanation;
  }
  void Explain(Explanation explanation, bool waits);
  // The children to examine from outside now, and what was seen.
  std::vector<int> TakeLooks(int64_t now_ns);
  void OnLook(int child_rank, const ProcessSample& sample);

  // The answer of the whole subtree, once it is complete or time is up. It goes
  // to the parent or, at the root, to StallInspector::Conclude.
  std::optional<wire::Answer> TakeAnswer(int64_t now_ns);

  // Whether an answer is awaited.
  bool is_open() const { return open_.has_value(); }
  // When TakeAnswer may next have a result; nullopt: not before another input.
  std::optional<int64_t> next_deadline_ns() const;

 private:
  struct Waiting {  // an operation that the probe asks about
    std::string name;
    ProcessSetId process_set = 0;
    RankRuns missing;
    RankRuns silent;
    bool pending = false;  // on some rank; else it has ended meanwhile
    bool stuck = false;    // see wire::StallAnswer
    bool computing = false;
  };
  // A child that is examined from outside.
  struct Watched {
    std::optional<ProcessSample> first;
    std::optional<ProcessLook> look;
  };
  struct Open {
    uint64_t number = 0;
    int64_t deadline_ns = 0;
    // This is not Abseil's set: a set that could not grow is destroyed here.
    std::set<int> unanswered;  // child ranks
    std::vector<Waiting> waiting;
    std::vector<wire::RankState> states;  // of missing ranks
    std::vector<int> silent;              // whose parent got no answer
    uint32_t overdue = 0;
    bool everybody = false;
    bool awaits_explanation = false;
    std::vector<std::pair<std::string, RankRuns>> stacks;  // text, its ranks
    int looks = 0;                                         // so far
    std::map<int, Watched> watched;                        // by rank
  };

  // Whether the rank still has to submit what others wait for.
  bool IsAwaited(const Waiting& waiting, int rank) const;
  RankRuns AwaitedOf(const Waiting& waiting, const RankRuns& ranks) const;
  bool IsSubmitted(const Waiting& waiting, TensorTable& table) const;
  static void AddStanding(Standing standing, Waiting& waiting);
  void AddStacks(const std::string& text, const RankRuns& ranks);
  int64_t NextLookNs() const;
  // This child has not answered.
  void OnSilent(const TreePosition::Child& child);
  // For missing ranks, keeps only the states of the lowest.
  static void KeepLowest(Open& open);
  // What was submitted last: recorded by its id, which costs less, or by name.
  std::string LastName(TensorTable& table) const;

  const Options options_;
  const TreePosition& tree_;
  const Membership& membership_;
  std::optional<uint32_t> last_id_;
  std::string last_name_;
  int64_t last_submit_ns_ = 0;
  std::string done_name_;
  int64_t done_ns_ = 0;
  bool left_ = false;
  std::optional<Open> open_;
};

}  // namespace hvdlite::negotiation
