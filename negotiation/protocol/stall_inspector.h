// StallInspector: finds out which ranks an operation waits for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "negotiation/protocol/membership.h"
#include "negotiation/protocol/messages.pb.h"
#include "negotiation/protocol/rank_list.h"
#include "negotiation/protocol/tensor_table.h"
#include "negotiation/protocol/tree.h"

namespace hvdlite::negotiation {

// A rank whose operations wait longer than `warning` reports them to the root,
// which asks all ranks by an inquiry down the tree; the answers come back up. A
// child that does not answer in time is silent, with its whole subtree: its
// process is stopped, swamped, or gone. One inquiry at a time.
//
// What this costs a rank does not grow with the number of ranks or operations.
// Reports, inquiries and answers are about the few operations that have waited
// longest, and of the rest tell how many there are; reports of several ranks
// are one on their way up, and a rank passes on one per quarter of `warning`,
// or two if the second is fatal; ranks travel as runs, and only of the lowest
// few it is told what they submitted last.
//
// Pure: no I/O, threads or clock.
class StallInspector {
 public:
  struct Options {
    int rank = 0;
    absl::Duration warning;
    absl::Duration failure;
    // How long answers may take per level of the tree.
    absl::Duration answer_deadline = absl::Seconds(2);
  };
  // `tree` and `membership` outlive this.
  StallInspector(const Options& options, const TreePosition& tree,
                 const Membership& membership);

  // This rank submitted the slot's operation.
  void OnSubmit(const TensorSlot& slot);
  // The table is about to forget slots that have ids.
  void KeepLastName(TensorTable& table) { last_name_ = LastName(table); }
  // This rank leaves, and from now on waits for the others to do so.
  void OnLeave(int64_t now_ns) { leaving_since_ns_ = now_ns; }

  // Looks whether anything of this rank has waited longer than allowed, and
  // reports it once per warning period. A join that waits since
  // `joining_since_ns` is never fatal: others may have work left for long.
  // Neither is leaving, unless `failure` is set.
  void Look(TensorTable& table, std::optional<int64_t> joining_since_ns,
            int64_t now_ns);
  // A child reported it. What was passed on a short time ago is known.
  void OnStall(const wire::Stall& stall, int64_t now_ns);
  // What to report to the parent now, if anything; not at the root.
  std::vector<wire::Stall> TakeStalls(int64_t now_ns);

  // At the root: an inquiry is due although nothing has stalled. Ranks that
  // answer report what they hold back.
  void InquireInAnyCase() { inquires_in_any_case_ = true; }
  // At the root: the inquiry to begin now, if one is due; to be passed to
  // Begin() and to the children.
  std::optional<wire::Inquiry> NextInquiry(int64_t now_ns);
  // An answer is awaited.
  bool inquires() const { return open_.has_value(); }

  // An inquiry reached this rank, which answers for itself.
  void Begin(const wire::Inquiry& inquiry, TensorTable& table, int64_t now_ns);
  void OnAnswer(int child_rank, const wire::Answer& answer);
  // The answer of the whole subtree, once it is complete or time is up: for the
  // parent or, at the root, for Verdicts.
  std::optional<wire::Answer> TakeAnswer(int64_t now_ns);

  // At the root: what to say about the stalled operations.
  struct Verdict {
    std::string message;
    bool fatal = false;
  };
  std::vector<Verdict> Verdicts(const wire::Answer& answer,
                                const std::vector<std::string>& hosts);

  // When Look, TakeStalls, NextInquiry or TakeAnswer may next have something;
  // nullopt: not before another input. `waits`: this rank has operations that
  // wait, or is leaving.
  std::optional<int64_t> next_deadline_ns(bool waits) const;

 private:
  struct Waiting {  // what an inquiry asks about
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
  struct Told {
    int64_t at_ns = 0;
    bool fatal = false;
  };

  // This rank's operations that have waited too long: visits each.
  void VisitOverdue(TensorTable& table, int64_t now_ns,
                    absl::FunctionRef<void(const wire::Stall&)> visit) const;
  wire::Stall StallOf(const std::string& name, int64_t since_ns,
                      int64_t now_ns) const;
  // Whether the rank has to submit what waits.
  bool IsAwaited(const Waiting& waiting, int rank) const;
  RankRuns AwaitedOf(const Waiting& waiting, const RankRuns& ranks) const;
  bool IsSubmitted(const Waiting& waiting, TensorTable& table) const;
  // Of ranks that are missing: states of the lowest alone.
  static void KeepLowest(Open& open);
  // Whether what was gathered is to be passed on now.
  bool TellsNow(int64_t now_ns) const;
  std::vector<wire::Stall> Tell(int64_t now_ns);
  // What was submitted last: by its id, which costs less, or by name.
  std::string LastName(TensorTable& table) const;

  const Options options_;
  const TreePosition& tree_;
  const Membership& membership_;
  const int64_t interval_ns_;  // between looks, and between reports
  int64_t next_look_ns_ = 0;
  absl::flat_hash_map<std::string, int64_t> reported_ns_;  // of this rank's
  std::optional<uint32_t> last_id_;
  std::string last_name_;
  int64_t last_submit_ns_ = 0;
  std::optional<int64_t> leaving_since_ns_;
  // Of the whole subtree: to be passed on, the most pressing first.
  std::vector<wire::Stall> stalls_;
  absl::flat_hash_map<std::string, Told> told_;
  int64_t next_telling_ns_ = 0;
  int64_t next_fatal_telling_ns_ = 0;
  std::optional<Open> open_;
  // At the root.
  uint64_t inquiries_ = 0;
  bool inquires_in_any_case_ = false;
  std::vector<wire::Stall> inquired_;  // about which the inquiry asks
};

}  // namespace hvdlite::negotiation
