// StallProbe: asks all ranks who has not submitted what others wait for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "negotiation/protocol/membership.h"
#include "negotiation/protocol/messages.pb.h"
#include "negotiation/protocol/rank_list.h"
#include "negotiation/protocol/tensor_table.h"
#include "negotiation/protocol/tree.h"

namespace hvdlite::negotiation {

// Names under which a probe asks for what is no operation.
inline constexpr char kJoinName[] = "join()";
inline constexpr char kShutdownName[] = "shutdown()";

// A stall probe travels down the tree from the root, and the answers come back
// up: this is one rank's part in it. A child that does not answer in time is
// silent, with its whole subtree: its process is stopped, swamped, or gone. One
// probe at a time.
//
// An answer does not grow with the number of ranks or operations: ranks travel
// as runs, and only of the lowest few it is told what they submitted last.
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
  };
  // `tree` and `membership` outlive this.
  StallProbe(const Options& options, const TreePosition& tree,
             const Membership& membership)
      : options_(options), tree_(tree), membership_(membership) {}

  // This rank submitted the slot's operation.
  void OnSubmit(const TensorSlot& slot);
  // The table is about to forget slots that have ids.
  void KeepLastName(TensorTable& table) { last_name_ = LastName(table); }
  // This rank leaves.
  void OnLeave() { left_ = true; }

  // A probe reached this rank, which answers for itself.
  void Begin(const wire::Probe& probe, TensorTable& table, int64_t now_ns);
  void OnAnswer(int child_rank, const wire::Answer& answer);
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
  };
  struct Open {
    uint64_t number = 0;
    int64_t deadline_ns = 0;
    absl::flat_hash_set<int> unanswered;  // child ranks
    std::vector<Waiting> waiting;
    std::vector<wire::RankState> states;  // of missing ranks
    std::vector<int> silent;              // whose parent waited in vain
    uint32_t overdue = 0;
  };

  // Whether the rank has to submit what waits.
  bool IsAwaited(const Waiting& waiting, int rank) const;
  RankRuns AwaitedOf(const Waiting& waiting, const RankRuns& ranks) const;
  bool IsSubmitted(const Waiting& waiting, TensorTable& table) const;
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
  bool left_ = false;
  std::optional<Open> open_;
};

}  // namespace hvdlite::negotiation
