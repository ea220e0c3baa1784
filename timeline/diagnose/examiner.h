// Examiner: finds causes in a trace of hvdlite's with steps. For FindCauses();
// its kinds of findings have a file each.
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

// What costs less of a step is not told.
inline constexpr double kLeastShare = 1.0 / 30;

// A difference has this reason if it explains that part of it.
inline constexpr double kExplains = 0.5;

// Remedies of several findings.
inline constexpr char kEqualWork[] =
    "give ranks batches of equal work: bucket samples by length, or sort them "
    "by cost before they are dealt out";
inline constexpr char kLoadAhead[] =
    "load ahead in more threads or processes (--workers, num_workers), keep "
    "the data on a fast disk or in memory, decode less";

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
  double work = -1;    // see StepCost; -1: not known of all steps
  double cpu_ns = -1;  // of computing; the same
  ResourceUse use;

  // Of the time in which the threads could have run they had no core.
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
  // Of a trace of PyTorch's profiler, which knows no waits.
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
  // Batches go from host to host, by other means than shared memory.
  bool UsesNetwork() const;
  bool Has(absl::string_view cause) const;
  void Add(Finding finding);
  // In each step the rank that waited least is the one that the others waited
  // for; it is to blame for what they waited longer than it.
  void FindBlame();

  // examiner.cc
  // More ranks compute on a host than it has cores.
  bool AddOversubscription();
  // Threads of a rank wait for a core: the progress thread, and with it all
  // communication, or those that compute.
  void AddStarvation();
  void AddCommonInput();
  void AddProfiledCollectives();
  void AddCommonFaults();
  // Seconds a second that the faults can account for of the kernel's.
  static double FaultTime(double minor_faults, double system_cpu);
  static std::string FaultsOf(const ResourceUse& use);
  static std::string FaultRemedy(bool is_major);
  void AddEvaluation();
  // The time until the first step is over, beyond what a step takes.
  void AddStart();

  // late_rank_findings.cc
  // Ranks wait for a rank that submits its gradients later than the others.
  void AddLateRank();
  // How much longer the others wait than `rank`, of a step: in the middle step,
  // so that a few long ones do not count.
  double UsualLateness(int64_t rank) const;
  // The CPU time of the main thread, of the time that counts as computing; 1
  // where it is not known.
  double MainRuns(const RankMeans& means) const;
  // Does the slow rank compute all the time, or does it block? Does it compute
  // more, or more slowly?
  void AddKindOfSlowness(const RankMeans& own, int64_t rank,
                         Finding* finding) const;

  // uneven_rank_findings.cc
  // Ranks are late in turns: because of their input, their batches, their
  // cores, or what keeps them from these. `often_last`: the rank that is late
  // more often than others; -1: none is.
  void AddTurns(double share, int64_t often_last);
  // The same, where neither work nor CPU time explains it.
  void AddLostCores(double difference_ns, const std::string& who,
                    Finding finding);
  // Of computing, a unit of work takes so long on average, in ns. nullopt: the
  // work of some step is not known.
  std::optional<double> NanosPerWork() const;
  // "rank 3 (node0, CPU 3) 1.31, ...": the CPU time per unit of work of the
  // slowest ranks and the fastest, the middle one's is 1. Empty: not known.
  std::string RankingOfCores() const;

  // batch_findings.cc
  // Batches are so small that what each costs, whatever its size, dominates.
  void AddSmallBatches();
  // The data plane itself takes long, although threads have their cores.
  void AddDataPlane();

  const Trace& trace_;
  const StepAnalysis& analysis_;
  const std::vector<RankStep> steps_;
  std::array<double, kStepParts> shares_ = {};
  std::map<int64_t, RankMeans> ranks_;
  std::map<int64_t, double> blame_;  // by rank, of all waits for ranks
  double rank_steps_ = 0;
  double step_ns_ = 0;               // mean
  const RankStep* worst_ = nullptr;  // that was waited for the longest
  double worst_ns_ = 0;
  std::vector<Finding> findings_;
};

}  // namespace hvdlite::timeline
