// Where the time of training steps went: parts that add up, the batches that
// ran in them, and what the threads got of the CPUs. Of hvdlite's traces,
// PyTorch profiler's with ProfilerStep, and, as one step, any other's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "timeline/diagnose/batches.h"
#include "timeline/diagnose/resource_use.h"
#include "timeline/read/trace.h"

namespace hvdlite::timeline {

// A moment of a step belongs to one of these. Those from kWaitForRanks on are
// exposed communication: the application waits for it and does nothing else.
enum class StepPart {
  kComputing,        // all that is none of the others
  kInput,            // loading a batch (LOAD_BATCH)
  kOther,            // evaluation and commits
  kWaitForRanks,     // for a rank that has not submitted its gradient yet
  kWaitForProgress,  // all have, but the batch has not begun
  kDataPlane,        // gradients are being reduced; of a profile: collectives
                     // go on, and no operator
  kCopies,           // into and out of the fusion buffer
};
inline constexpr size_t kStepParts = 7;
using PartTimes = std::array<int64_t, kStepParts>;  // ns

inline int64_t& At(PartTimes& times, StepPart part) {
  return times[static_cast<size_t>(part)];
}
inline int64_t At(const PartTimes& times, StepPart part) {
  return times[static_cast<size_t>(part)];
}
absl::string_view NameOf(StepPart part);  // such as "waiting for ranks"
int64_t TotalNs(const PartTimes& times);
int64_t ExposedNs(const PartTimes& times);

// A step of one rank. Its parts add up to its duration.
struct RankStep {
  int64_t rank = 0;    // of a profile that does not tell it: the process
  int64_t number = 0;  // from 1, the same on all ranks
  int64_t start_ns = 0;
  PartTimes parts = {};
  int64_t hidden_ns = 0;  // batches ran while the application computed
  int64_t count = 1;      // steps that it stands for, as their sum
  int64_t work = -1;      // see StepCost; -1: not known
  int64_t cpu_ns = -1;    // that computing took; -1: not known

  int64_t duration_ns() const { return TotalNs(parts); }
  int64_t end_ns() const { return start_ns + duration_ns(); }
};

enum class StepSource {
  kRecorded,  // by DistributedOptimizer::step()
  kProfiler,  // ProfilerStep of PyTorch's profiler
  kWhole,     // not recorded: the whole trace is taken for one step
};

struct StepAnalysis {
  StepSource source = StepSource::kWhole;
  // Whether the application's waits are recorded: else exposed parts are 0.
  bool knows_waits = false;
  std::vector<RankStep> steps;  // by number, then by rank
  std::vector<Batch> batches;   // by start on the lowest rank
  // Of the steady steps, per step, on the lowest rank.
  double batches_per_step = 0;
  double bytes_per_step = 0;
  std::map<int64_t, ResourceUse> resources;  // by rank

  // Steps to judge a training by: all but the first of the training, which
  // pays for the start, where others are left.
  std::vector<RankStep> SteadySteps() const;
};

StepAnalysis AnalyzeSteps(const Trace& trace);

// The first step of a training, which pays for the start.
struct StartUp {
  int64_t start_ns = 0;  // on the first rank
  int64_t end_ns = 0;    // on the last
  double step_ns = 0;    // what a later one takes, mean
  double share = 0;      // of the run's time, beyond such a step
};

// nullopt: the training's first step is not in `analysis`.
std::optional<StartUp> FindStartUp(const StepAnalysis& analysis);

// `steps`, which are ordered by number, in groups of one number: a step on all
// its ranks. They point into `steps`.
std::vector<absl::Span<const RankStep>> ByNumber(
    absl::Span<const RankStep> steps);

// Sums of parts over `steps`, of each rank.
std::map<int64_t, PartTimes> PartsByRank(const std::vector<RankStep>& steps);
PartTimes SumOfParts(const std::vector<RankStep>& steps);

}  // namespace hvdlite::timeline
