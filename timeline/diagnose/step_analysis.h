// Finds where the time of training steps went: parts that add up, the buckets
// that ran in the steps, and the CPU time of the threads. Reads traces of
// hvdlite and of PyTorch's profiler (with ProfilerStep). Any other trace counts
// as one step.
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
#include "timeline/diagnose/buckets.h"
#include "timeline/diagnose/resource_use.h"
#include "timeline/read/trace.h"

namespace hvdlite::timeline {

// Each moment of a step belongs to one part. The parts from kWaitForRanks on
// are exposed communication: the application only waits for it.
enum class StepPart {
  kComputing,        // everything that is in no other part
  kInput,            // loading a mini-batch (LOAD_BATCH)
  kOther,            // evaluation and commits
  kWaitForRanks,     // for a rank that has not submitted its gradient yet
  kWaitForProgress,  // all have, but the bucket has not started
  kDataPlane,        // gradients are being reduced; in a profile: collectives
                     // run, and no operator
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
  int64_t rank = 0;    // the process, in a profile without the rank
  int64_t number = 0;  // from 1, the same on all ranks
  int64_t start_ns = 0;
  PartTimes parts = {};
  int64_t hidden_ns = 0;  // buckets ran while the application computed
  int64_t count = 1;      // number of steps whose sum this is
  int64_t work = -1;      // see StepCost; -1: unknown
  int64_t cpu_ns = -1;    // CPU time of computing; -1: unknown

  int64_t duration_ns() const { return TotalNs(parts); }
  int64_t end_ns() const { return start_ns + duration_ns(); }
};

enum class StepSource {
  kRecorded,  // by DistributedOptimizer::step()
  kProfiler,  // ProfilerStep of PyTorch's profiler
  kWhole,     // not recorded: the whole trace counts as one step
};

struct StepAnalysis {
  StepSource source = StepSource::kWhole;
  // Whether the application's waits are recorded. If not, exposed parts are 0.
  bool knows_waits = false;
  std::vector<RankStep> steps;  // by number, then by rank
  std::vector<Bucket> buckets;  // by start on the lowest rank
  // Means over the steady steps on the lowest rank.
  double buckets_per_step = 0;
  double bytes_per_step = 0;
  std::map<int64_t, ResourceUse> resources;  // by rank

  // The steps without the first one of the training, which includes the start.
  // Returns the first step if there are no others.
  std::vector<RankStep> SteadySteps() const;
};

StepAnalysis AnalyzeSteps(const Trace& trace);

// The first step of a training, which includes the start.
struct StartUp {
  int64_t start_ns = 0;  // on the first rank
  int64_t end_ns = 0;    // on the last rank
  double step_ns = 0;    // mean time of a later step
  double share = 0;      // extra time of the first step: a part of the run
};

// Returns nullopt if the training's first step is not in `analysis`.
std::optional<StartUp> FindStartUp(const StepAnalysis& analysis);

// Groups `steps`, which must be ordered by number: a group is one step on all
// its ranks. The groups point into `steps`.
std::vector<absl::Span<const RankStep>> ByNumber(
    absl::Span<const RankStep> steps);

// Sums of the parts over `steps`, by rank.
std::map<int64_t, PartTimes> PartsByRank(const std::vector<RankStep>& steps);
PartTimes SumOfParts(const std::vector<RankStep>& steps);

}  // namespace hvdlite::timeline
