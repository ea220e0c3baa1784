// StallInspector finds out which ranks an operation waits for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "negotiation/protocol/membership.h"
#include "negotiation/protocol/messages.pb.h"
#include "negotiation/protocol/stall_probe.h"
#include "negotiation/protocol/tensor_table.h"
#include "negotiation/protocol/tree.h"

namespace hvdlite::negotiation {

// A rank whose operations wait longer than `warning` reports them to the root.
// The root asks all ranks by a stall probe down the tree.
//
// The cost for a rank does not grow with the number of ranks or operations.
// Reports and probes name the few operations that have waited longest, and
// count the rest. Reports of several ranks are combined on their way up. A rank
// passes on one per quarter of `warning`, or two if the second is fatal.
//
// There is no I/O, thread or clock.
class StallInspector {
 public:
  struct Options {
    int rank = 0;
    absl::Duration warning;
    absl::Duration failure;
    bool explains = false;  // see StallProbe::Options
  };
  // `tree` and `membership` must outlive this.
  StallInspector(const Options& options, const TreePosition& tree,
                 const Membership& membership);

  // This rank leaves, and from now on waits for the others to leave.
  void OnLeave(int64_t now_ns);

  // Checks whether any operation of this rank has waited longer than allowed,
  // and reports it once per warning period. A join that waits since
  // `joining_since_ns` is never fatal, since other ranks may have a lot of work
  // left. Leaving is fatal only if `failure` is set.
  void Look(TensorTable& table, std::optional<int64_t> joining_since_ns,
            int64_t now_ns);
  // A child reported a stall. A stall that was passed on recently is ignored.
  void OnStall(const wire::Stall& stall, int64_t now_ns);
  // What to report to the parent now, if anything; not at the root.
  std::vector<wire::Stall> TakeStalls(int64_t now_ns);

  // At the root: a probe is due although nothing has stalled. Ranks that answer
  // send the reports that they hold back.
  void ProbeInAnyCase() { probes_in_any_case_ = true; }
  // At the root: the probe to begin now, if one is due; for probe() and for the
  // children.
  std::optional<wire::Probe> NextProbe(int64_t now_ns);
  // This rank's part in probes.
  StallProbe& probe() { return probe_; }
  const StallProbe& probe() const { return probe_; }

  // At the root, a user wants to know what all ranks are doing; elsewhere, this
  // rank has to pass that request on.
  void AskEverybody() { asks_everybody_ = true; }

  // At the root: the text about the stalled operations. `message` names in a
  // few lines what waits for which ranks; `details` describes what these ranks
  // are doing. Both are empty if there is nothing to report.
  //
  // It is fatal if an operation has waited longer than `failure`, and the
  // missing ranks are not expected to come (StandingOf). If they were expected
  // before, this must have lasted for `failure` minus `warning`.
  struct Verdict {
    std::string message;
    std::string details;
    bool fatal = false;
  };
  // `pids`: one entry per rank; empty: not known.
  Verdict Conclude(const wire::Answer& answer,
                   const std::vector<std::string>& hosts,
                   const std::vector<int>& pids, int64_t now_ns);
  // The same about what all ranks are doing, if the answer contains it.
  std::optional<std::string> ReportOfEverybody(
      const wire::Answer& answer, const std::vector<std::string>& hosts,
      const std::vector<int>& pids) const;

  // When Look, TakeStalls, NextProbe or the probe's TakeAnswer may next have a
  // result; nullopt: not before another input. `waits`: this rank has
  // operations that wait, or is leaving.
  std::optional<int64_t> next_deadline_ns(bool waits) const;

 private:
  struct Told {
    int64_t at_ns = 0;
    bool fatal = false;
  };

  wire::Stall StallOf(const std::string& name, int64_t since_ns,
                      int64_t now_ns) const;
  // Whether the collected stalls should be passed on now.
  bool TellsNow(int64_t now_ns) const;
  std::vector<wire::Stall> Tell(int64_t now_ns);

  const Options options_;
  const bool is_root_;
  const Membership& membership_;
  const absl::Duration allowed_;  // time before something is reported
  const int64_t interval_ns_;     // between checks, and between reports
  int64_t next_look_ns_ = 0;
  std::map<std::string, int64_t> reported_ns_;  // stalls of this rank
  std::optional<int64_t> leaving_since_ns_;
  // Stalls of the whole subtree to pass on, the most pressing first.
  std::vector<wire::Stall> stalls_;
  absl::flat_hash_map<std::string, Told> told_;
  int64_t next_telling_ns_ = 0;
  int64_t next_fatal_telling_ns_ = 0;
  StallProbe probe_;
  // Used at the root.
  uint64_t probes_ = 0;
  bool probes_in_any_case_ = false;
  bool asks_everybody_ = false;
  std::vector<wire::Stall> probed_;  // that the probe asks about
  // By operation: when it was last warned about, and when the ranks that it
  // waited for were last expected to come.
  struct History {
    std::optional<int64_t> warned_ns;
    std::optional<int64_t> hopeful_ns;
  };
  std::map<std::string, History> history_;
};

}  // namespace hvdlite::negotiation
