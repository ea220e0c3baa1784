// A trace that was read and analyzed, for all reports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "timeline/diagnose/findings.h"
#include "timeline/diagnose/step_analysis.h"
#include "timeline/read/trace_reader.h"

namespace hvdlite::timeline {

// A trace and the results of its analysis.
struct Examined {
  Examined(std::string trace_path, Trace read);
  // Without a trace file: from what the ranks reported while they ran.
  Examined(Trace ranks, StepAnalysis told);

  const std::string path;  // as the user gave it; empty: no trace file
  const Trace trace;
  const StepAnalysis analysis;
  const std::vector<Finding> findings;

  bool has_steps() const;  // if not, the whole trace counts as one step
  // "rank", or "process" for profiles without a rank: what RankStep::rank is.
  std::string rank_word() const;
};

// The reasons why a report is empty or incomplete.
inline constexpr char kNoWaits[] =
    "; this trace does not show when the application waited for communication";
inline constexpr char kNoSteps[] =
    "This trace has no training steps. Record one with "
    "hvdlite::DistributedOptimizer and HVDLITE_TIMELINE";

inline double Share(int64_t part_ns, int64_t total_ns) {
  return total_ns == 0
             ? 0
             : static_cast<double>(part_ns) / static_cast<double>(total_ns);
}

}  // namespace hvdlite::timeline
