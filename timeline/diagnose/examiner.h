// Examiner: finds causes in a trace with steps, for FindCauses(). Each kind of
// finding has its own file.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "timeline/diagnose/findings.h"
#include "timeline/diagnose/step_analysis.h"
#include "timeline/read/trace.h"

namespace hvdlite::timeline {

// A cause that costs a smaller part of a step is not reported.
inline constexpr double kLeastShare = 1.0 / 30;

// A cause explains a difference if it accounts for this part of it.
inline constexpr double kExplains = 0.5;

// Remedies that several findings share.
inline constexpr char kEqualWork[] =
    "give all ranks mini-batches of equal work: group samples by length, or "
    "sort them by cost before they are distributed";
inline constexpr char kLoadAhead[] =
    "load ahead with more threads or processes (--workers, num_workers); keep "
    "the data on a fast disk or in memory; decode less";

// "3.4 %", "2.50 ms", "1.2 MB".
std::string Percent(double share);
std::string Duration(double ns);
std::string Bytes(double bytes);

// Means per step of one rank, and its resources.
struct RankMeans {
  double computing_ns = 0;
  double input_ns = 0;
  double other_ns = 0;
  double wait_ns = 0;
  double work = -1;    // see StepCost; -1: unknown for some step
  double cpu_ns = -1;  // CPU time of computing; -1: unknown for some step
  ResourceUse use;

  // The part of the runnable time in which the threads waited for a core.
  double progress_starved() const {
    return Starved(use.progress_cpu, use.progress_delay);
  }
  double compute_starved() const {
    return Starved(use.compute_cpu, use.compute_delay);
  }

 private:
  static double Starved(double cpu, double delay) {
    return cpu + delay > 0 ? delay / (cpu + delay) : 0;
  }
};

class Examiner {
 public:
  Examiner(const Trace& trace, const StepAnalysis& analysis);

  std::vector<Finding> Examine();
  // For traces of PyTorch's profiler, which do not record waits.
  std::vector<Finding> ExamineProfile();

 private:
  double Share(StepPart part) const {
    return shares_[static_cast<size_t>(part)];
  }

  static int64_t Waits(const RankStep& step) {
    return At(step.parts, StepPart::kWaitForRanks);
  }

  // Mean of the ranks other than `rank`.
  template <typename Value>
  double OfOthers(int64_t rank, Value value) const {
    double sum = 0;
    for (const auto& [other, means] : ranks_) {
      if (other != rank) sum += value(means);
    }
    return sum / static_cast<double>(std::max<size_t>(ranks_.size() - 1, 1));
  }

  template <typename Value>
  double OfAll(Value value) const {
    return OfOthers(-1, value) *
           static_cast<double>(std::max<size_t>(ranks_.size() - 1, 1)) /
           static_cast<double>(std::max<size_t>(ranks_.size(), 1));
  }

  std::string HostOf(int64_t rank) const;
  // Buckets are reduced between hosts by other means than shared memory.
  bool UsesNetwork() const;
  bool Has(absl::string_view cause) const;
  void Add(Finding finding);
  // The rank that waited least in a step is the one that the others waited for.
  // It gets the blame for the time that they waited longer than it did.
  void FindBlame();

  // examiner.cc
  // Reports a host on which more ranks compute than it has cores.
  bool AddOversubscription();
  // Reports threads that wait for a core: a background thread, which delays all
  // communication, or threads that compute.
  void AddStarvation();
  void AddCommonInput();
  void AddProfiledCollectives();
  void AddCommonFaults();
  // The part of the kernel's CPU time that page faults can explain, in seconds
  // per second.
  static double FaultTime(double minor_faults, double system_cpu);
  static std::string FaultsOf(const ResourceUse& use);
  static std::string FaultRemedy(bool is_major);
  void AddEvaluation();
  // Reports a long start: the time until the end of the first step, without the
  // time of a usual step.
  void AddStart();

  // late_rank_findings.cc
  // Reports a rank that submits its gradients later than the others.
  void AddLateRank();
  // How much longer the others wait than `rank`, as a part of a step. This is
  // the median over steps, so that a few long steps do not count.
  double UsualLateness(int64_t rank) const;
  // The part of the computing time in which the main thread has a CPU; 1 if
  // unknown.
  double MainRuns(const RankMeans& means) const;
  // Adds to `finding` whether the slow rank blocks, computes more than the
  // others, or computes more slowly.
  void AddKindOfSlowness(const RankMeans& own, int64_t rank,
                         Finding* finding) const;

  // uneven_rank_findings.cc
  // Reports ranks that are late in turns, because of their input, their
  // mini-batches, their cores, or threads that do not run. `often_last`: the
  // rank that is late more often than the others; -1: none.
  void AddTurns(double share, int64_t often_last);
  // The same if neither work nor CPU time explains it.
  void AddLostCores(double difference_ns, const std::string& who,
                    Finding finding);
  // The mean computing time per unit of work, in ns; nullopt if the work of
  // some step is unknown.
  std::optional<double> NanosPerWork() const;
  // The CPU time per unit of work of the slowest ranks and of the fastest,
  // relative to the median rank: "rank 3 (node0, CPUs 3) 1.31, ...". Empty if
  // unknown.
  std::string RankingOfCores() const;

  // bucket_findings.cc
  // Reports buckets so small that their fixed cost dominates.
  void AddSmallBuckets();
  // Reports that reducing itself takes long, although threads have their cores.
  void AddDataPlane();

  const Trace& trace_;
  const StepAnalysis& analysis_;
  const std::vector<RankStep> steps_;
  std::array<double, kStepParts> shares_ = {};
  std::map<int64_t, RankMeans> ranks_;
  std::map<int64_t, double> blame_;  // rank -> part of all waits for ranks
  double rank_steps_ = 0;
  double step_ns_ = 0;               // mean
  const RankStep* worst_ = nullptr;  // for which the others waited longest
  double worst_ns_ = 0;
  std::vector<Finding> findings_;
};

}  // namespace hvdlite::timeline
