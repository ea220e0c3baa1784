// StallInspector: finds out which ranks an operation waits for.
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

// A rank whose operations wait longer than `warning` reports them to the root,
// which asks all ranks by a stall probe down the tree.
//
// What this costs a rank does not grow with the number of ranks or operations.
// Reports and probes are about the few operations that have waited longest, and
// of the rest tell how many there are; reports of several ranks are one on
// their way up, and a rank passes on one per quarter of `warning`, or two if
// the second is fatal.
//
// Pure: no I/O, threads or clock.
class StallInspector {
 public:
  struct Options {
    int rank = 0;
    absl::Duration warning;
    absl::Duration failure;
    bool explains = false;  // as StallProbe::Options
  };
  // `tree` and `membership` outlive this.
  StallInspector(const Options& options, const TreePosition& tree,
                 const Membership& membership);

  // This rank leaves, and from now on waits for the others to do so.
  void OnLeave(int64_t now_ns);

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

  // At the root: a probe is due although nothing has stalled. Ranks that answer
  // report what they coalesce.
  void ProbeInAnyCase() { probes_in_any_case_ = true; }
  // At the root: the probe to begin now, if one is due; for probe() and the
  // children.
  std::optional<wire::Probe> NextProbe(int64_t now_ns);
  // This rank's part in probes.
  StallProbe& probe() { return probe_; }
  const StallProbe& probe() const { return probe_; }

  // At the root: somebody wants to know what all ranks are doing, or this one
  // is to pass that on.
  void AskEverybody() { asks_everybody_ = true; }

  // At the root: what to say about the stalled operations: what waits for whom
  // in a line or a few, and what those ranks are doing in more of them. Both
  // are empty where there is nothing to say.
  //
  // It is fatal where an operation has waited for longer than `failure`, unless
  // the ranks that are missing may still come, as StandingOf says: then it is
  // once that has not been so for as long as `failure` is behind `warning`.
  struct Verdict {
    std::string message;
    std::string details;
    bool fatal = false;
  };
  // `pids`: of all ranks; empty: not known.
  Verdict Conclude(const wire::Answer& answer,
                   const std::vector<std::string>& hosts,
                   const std::vector<int>& pids, int64_t now_ns);
  // The same of what all ranks are doing, if the answer tells.
  std::optional<std::string> ReportOfEverybody(
      const wire::Answer& answer, const std::vector<std::string>& hosts,
      const std::vector<int>& pids) const;

  // When Look, TakeStalls, NextProbe or the probe's TakeAnswer may next have
  // something; nullopt: not before another input. `waits`: this rank has
  // operations that wait, or is leaving.
  std::optional<int64_t> next_deadline_ns(bool waits) const;

 private:
  struct Told {
    int64_t at_ns = 0;
    bool fatal = false;
  };

  wire::Stall StallOf(const std::string& name, int64_t since_ns,
                      int64_t now_ns) const;
  // Whether what was gathered is to be passed on now.
  bool TellsNow(int64_t now_ns) const;
  std::vector<wire::Stall> Tell(int64_t now_ns);

  const Options options_;
  const bool is_root_;
  const Membership& membership_;
  const absl::Duration allowed_;  // until something is reported
  const int64_t interval_ns_;     // between looks, and between reports
  int64_t next_look_ns_ = 0;
  std::map<std::string, int64_t> reported_ns_;  // of this rank's
  std::optional<int64_t> leaving_since_ns_;
  // Of the whole subtree: to be passed on, the most pressing first.
  std::vector<wire::Stall> stalls_;
  absl::flat_hash_map<std::string, Told> told_;
  int64_t next_telling_ns_ = 0;
  int64_t next_fatal_telling_ns_ = 0;
  StallProbe probe_;
  // At the root.
  uint64_t probes_ = 0;
  bool probes_in_any_case_ = false;
  bool asks_everybody_ = false;
  std::vector<wire::Stall> probed_;  // about which the probe asks
  // By operation: when it was last warned about, and when ranks that it waited
  // for were last found to be on their way.
  struct History {
    std::optional<int64_t> warned_ns;
    std::optional<int64_t> hopeful_ns;
  };
  std::map<std::string, History> history_;
};

}  // namespace hvdlite::negotiation
