// A trace that was read and analysed, for all that is said of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "timeline/diagnose/findings.h"
#include "timeline/diagnose/step_analysis.h"
#include "timeline/read/trace_reader.h"

namespace hvdlite::timeline {

// A trace and what is known of it.
struct Examined {
  Examined(std::string trace_path, Trace read);
  // Without a trace: of what ranks told while they ran.
  Examined(Trace ranks, StepAnalysis told);

  const std::string path;  // as it was asked for; empty: there is none
  const Trace trace;
  const StepAnalysis analysis;
  const std::vector<Finding> findings;

  bool has_steps() const;  // else the whole trace stands for one
  // What RankStep::rank is: "rank", or "process" of a profile that does not
  // tell its rank.
  std::string rank_word() const;
};

// Why a question has no answer, or half of one.
inline constexpr char kNoWaits[] =
    "; when the application waited for communication this trace does not tell";
inline constexpr char kNoSteps[] =
    "This trace does not tell its training steps: record one with "
    "hvdlite::DistributedOptimizer and HVDLITE_TIMELINE";

inline double Share(int64_t part_ns, int64_t total_ns) {
  return total_ns == 0
             ? 0
             : static_cast<double>(part_ns) / static_cast<double>(total_ns);
}

}  // namespace hvdlite::timeline
