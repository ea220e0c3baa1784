// StallInspector: finds out which ranks a tensor waits for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "negotiation/membership.h"
#include "negotiation/messages.pb.h"
#include "negotiation/tensor_table.h"
#include "negotiation/tree.h"

namespace hvdlite::negotiation {

// A rank whose operation waits longer than `warning` asks the root, which asks
// all ranks by an inquiry down the tree; the answers come back up, merged on
// the way. A child that does not answer in time is silent, with its whole
// subtree: its process is stopped, swamped, or gone. One inquiry at a time.
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

  // Stalls to report to the root: slots of this rank that have waited longer
  // than allowed, each at most once per warning period. A join that waits since
  // `joining_since_ns` is one of them, but never fatal: others may have work
  // left for long.
  std::vector<wire::Stall> Overdue(TensorTable& table,
                                   std::optional<int64_t> joining_since_ns,
                                   int64_t now_ns);

  // At the root: a stall was reported (or is this rank's own). One that was
  // inquired about within half a warning period is known.
  void OnStall(const wire::Stall& stall, int64_t now_ns);
  // At the root: an inquiry is due although nothing has stalled. Ranks that
  // answer report what they hold back.
  void InquireInAnyCase() { inquires_in_any_case_ = true; }
  // At the root: the inquiry to begin now, if one is due; to be passed to
  // Begin() and to the children.
  std::optional<wire::Inquiry> NextInquiry();

  // An inquiry reached this rank, which answers for itself.
  void Begin(const wire::Inquiry& inquiry, TensorTable& table, int64_t now_ns);

  // A child answered.
  void OnAnswer(int child_rank, const wire::Report& report);

  // The answer of the whole subtree, once it is complete or time is up: for the
  // parent or, at the root, for Verdicts.
  struct Answer {
    uint64_t inquiry = 0;
    std::vector<wire::StallAnswer> answers;
  };
  std::optional<Answer> TakeAnswer(int64_t now_ns);

  // At the root: what to say about each stalled tensor.
  struct Verdict {
    std::string message;
    bool fatal = false;
  };
  std::vector<Verdict> Verdicts(const Answer& answer,
                                const std::vector<std::string>& hosts);

  // When Overdue or TakeAnswer may next have something; nullopt: not before
  // another input. `pending`: this rank has operations that wait.
  std::optional<int64_t> next_deadline_ns(bool pending) const;

 private:
  struct Open {
    uint64_t number = 0;
    int64_t deadline_ns = 0;
    absl::flat_hash_set<int> unanswered;  // child ranks
    absl::btree_map<std::string, wire::StallAnswer> answers;
    absl::flat_hash_map<std::string, ProcessSetId> process_sets;  // by name
  };

  // Whether the rank has to submit what the process set's members wait for.
  bool IsAwaited(ProcessSetId process_set, int rank) const;
  bool IsOverdue(const TensorSlot& slot, int64_t now_ns, bool* fatal) const;

  const Options options_;
  const TreePosition& tree_;
  const Membership& membership_;
  int64_t next_check_ns_ = 0;
  absl::flat_hash_map<std::string, int64_t> reported_ns_;
  // What was submitted last: by its id, which costs less, or by name.
  std::string LastName(TensorTable& table) const;
  std::optional<uint32_t> last_id_;
  std::string last_name_;
  int64_t last_submit_ns_ = 0;
  std::optional<Open> open_;
  // At the root.
  uint64_t inquiries_ = 0;
  bool inquires_in_any_case_ = false;
  absl::btree_map<std::string, wire::Stall> stalls_;    // to inquire about
  absl::btree_map<std::string, wire::Stall> inquired_;  // being inquired
  absl::flat_hash_map<std::string, int64_t> known_ns_;  // when last inquired
};

}  // namespace hvdlite::negotiation
