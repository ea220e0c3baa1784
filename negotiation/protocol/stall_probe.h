// StallProbe: asks all ranks who has not submitted what others wait for.
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

// Names under which a probe asks for what is no operation.
inline constexpr char kJoinName[] = "join()";
inline constexpr char kShutdownName[] = "shutdown()";
// Nobody has submitted this: so all ranks are missing, and say what they are
// doing.
inline constexpr char kEverybodyName[] = "what all ranks are doing";

// A stall probe travels down the tree from the root, and the answers come back
// up: this is one rank's part in it. A child that does not answer in time is
// silent, with its whole subtree: its process is stopped, swamped, or gone. One
// probe at a time.
//
// An answer does not grow with the number of ranks or operations: ranks travel
// as runs, and only of the lowest few it is told what they submitted last.
//
// A rank that is missing explains itself, which somebody does for it: so that
// is an input. A child that does not answer is looked at from outside, twice,
// where it is on this rank's host.
//
// Pure: no I/O, threads or clock.
class StallProbe {
 public:
  struct Options {
    int rank = 0;
    // Operations that have waited longer are counted in the answer.
    absl::Duration overdue_after;
    // How long answers may take per level of the tree.
    absl::Duration answer_deadline = absl::Seconds(2);
    // Explanations and looks can be had, and are waited for.
    bool explains = false;
  };
  // `tree` and `membership` outlive this.
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
  // This rank has executed a decision, `name` being its first operation.
  void OnDone(const std::string& name, int64_t now_ns) {
    done_name_ = name;
    done_ns_ = now_ns;
  }
  // This rank leaves.
  void OnLeave() { left_ = true; }

  // A probe reached this rank, which answers for itself.
  void Begin(const wire::Probe& probe, TensorTable& table, int64_t now_ns);
  void OnAnswer(int child_rank, const wire::Answer& answer);

  // Whether this rank is to explain itself; what it says; and whether a thread
  // of it waits for other ranks meanwhile.
  bool awaits_explanation() const {
    return open_.has_value() && open_->awaits_explanation;
  }
  void Explain(Explanation explanation, bool waits);
  // The children to look at from outside now; and what there is to see.
  std::vector<int> TakeLooks(int64_t now_ns);
  void OnLook(int child_rank, const ProcessSample& sample);

  // The answer of the whole subtree, once it is complete or time is up: for the
  // parent or, at the root, for StallInspector::Verdicts.
  std::optional<wire::Answer> TakeAnswer(int64_t now_ns);

  // An answer is awaited.
  bool is_open() const { return open_.has_value(); }
  // When TakeAnswer may next have something; nullopt: not before another input.
  std::optional<int64_t> next_deadline_ns() const;

 private:
  struct Waiting {  // what the probe asks about
    std::string name;
    ProcessSetId process_set = 0;
    RankRuns missing;
    RankRuns silent;
    bool pending = false;  // somewhere; else it has ended meanwhile
    bool stuck = false;    // as in wire::StallAnswer
    bool computing = false;
  };
  // A child that is looked at from outside.
  struct Watched {
    std::optional<ProcessSample> first;
    std::optional<ProcessLook> look;
  };
  struct Open {
    uint64_t number = 0;
    int64_t deadline_ns = 0;
    // Not Abseil's: what could not grow is destroyed here.
    std::set<int> unanswered;  // child ranks
    std::vector<Waiting> waiting;
    std::vector<wire::RankState> states;  // of missing ranks
    std::vector<int> silent;              // whose parent waited in vain
    uint32_t overdue = 0;
    bool everybody = false;
    bool awaits_explanation = false;
    std::vector<std::pair<std::string, RankRuns>> stacks;  // text, whose
    int looks = 0;                                         // so far
    std::map<int, Watched> watched;                        // by rank
  };

  // Whether the rank has to submit what waits.
  bool IsAwaited(const Waiting& waiting, int rank) const;
  RankRuns AwaitedOf(const Waiting& waiting, const RankRuns& ranks) const;
  bool IsSubmitted(const Waiting& waiting, TensorTable& table) const;
  static void AddStanding(Standing standing, Waiting& waiting);
  void AddStacks(const std::string& text, const RankRuns& ranks);
  int64_t NextLookNs() const;
  // This child has not answered.
  void OnSilent(const TreePosition::Child& child);
  // Of ranks that are missing: states of the lowest alone.
  static void KeepLowest(Open& open);
  // What was submitted last: by its id, which costs less, or by name.
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
