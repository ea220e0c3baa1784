#include "timeline/diagnose/examiner.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"

namespace hvdlite::timeline {
namespace {

// The CPUs of a list like "0-2,5". Entries that are not numbers are skipped.
std::set<int> CpusOf(const std::string& list) {
  constexpr int kMostCpus = 1 << 16;
  std::set<int> cpus;
  for (const absl::string_view range : absl::StrSplit(list, ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(range, '-');
    int first = 0;
    int last = 0;
    if (!absl::SimpleAtoi(ends.front(), &first) ||
        !absl::SimpleAtoi(ends.back(), &last)) {
      continue;
    }
    last = std::min(last, kMostCpus);
    for (int cpu = std::max(first, 0); cpu <= last; ++cpu) cpus.insert(cpu);
  }
  return cpus;
}

}  // namespace

std::string Percent(double share) {
  return absl::StrFormat("%.*f %%", share < 0.0995 ? 1 : 0, share * 100);
}

std::string Duration(double ns) {
  if (ns < 1e3) return absl::StrFormat("%.0f ns", ns);
  if (ns < 1e6) return absl::StrFormat("%.0f us", ns / 1e3);
  if (ns < 1e9) return absl::StrFormat("%.*f ms", ns < 1e7 ? 2 : 0, ns / 1e6);
  return absl::StrFormat("%.2f s", ns / 1e9);
}

std::string Bytes(double bytes) {
  if (bytes < 1e3) return absl::StrFormat("%.0f bytes", bytes);
  if (bytes < 1e6) return absl::StrFormat("%.1f kB", bytes / 1e3);
  return absl::StrFormat("%.1f MB", bytes / 1e6);
}

Examiner::Examiner(const Trace& trace, const StepAnalysis& analysis)
    : trace_(trace), analysis_(analysis), steps_(analysis.SteadySteps()) {
  const PartTimes sums = SumOfParts(steps_);
  const auto total_ns = static_cast<double>(TotalNs(sums));
  for (size_t i = 0; i < kStepParts; ++i) {
    shares_[i] = total_ns > 0 ? static_cast<double>(sums[i]) / total_ns : 0;
  }
  std::map<int64_t, int64_t> counts;
  std::map<int64_t, std::pair<double, double>> costs;  // work, CPU time
  const auto add_known = [](int64_t value, double* sum) {
    *sum = value < 0 || *sum < 0 ? -1 : *sum + static_cast<double>(value);
  };
  for (const RankStep& step : steps_) {
    counts[step.rank] += step.count;
    add_known(step.work, &costs[step.rank].first);
    add_known(step.cpu_ns, &costs[step.rank].second);
    rank_steps_ += static_cast<double>(step.count);
  }
  for (const auto& [rank, parts] : PartsByRank(steps_)) {
    const auto count = static_cast<double>(counts[rank]);
    const auto mean = [count, &parts = parts](StepPart part) {
      return static_cast<double>(At(parts, part)) / count;
    };
    RankMeans& means = ranks_[rank];
    means.computing_ns = mean(StepPart::kComputing);
    means.input_ns = mean(StepPart::kInput);
    means.other_ns = mean(StepPart::kOther);
    means.wait_ns = mean(StepPart::kWaitForRanks);
    means.work = costs[rank].first / count;
    means.cpu_ns = costs[rank].second / count;
    const auto use = analysis.resources.find(rank);
    if (use != analysis.resources.end()) means.use = use->second;
  }
  step_ns_ = rank_steps_ > 0 ? total_ns / rank_steps_ : 0;
  FindBlame();
}

std::vector<Finding> Examiner::Examine() {
  if (steps_.empty() || step_ns_ <= 0) return {};
  if (!AddOversubscription()) {
    AddSmallBuckets();
    AddStarvation();
    AddLateRank();
  }
  AddDataPlane();
  AddCommonInput();
  AddCommonFaults();
  AddEvaluation();
  std::stable_sort(
      findings_.begin(), findings_.end(),
      [](const Finding& a, const Finding& b) { return a.share > b.share; });
  AddStart();
  return std::move(findings_);
}

std::vector<Finding> Examiner::ExamineProfile() {
  if (steps_.empty() || step_ns_ <= 0) return {};
  AddCommonInput();
  AddProfiledCollectives();
  std::stable_sort(
      findings_.begin(), findings_.end(),
      [](const Finding& a, const Finding& b) { return a.share > b.share; });
  AddStart();
  return std::move(findings_);
}

void Examiner::FindBlame() {
  double waits_ns = 0;
  for (const absl::Span<const RankStep> ranks : ByNumber(steps_)) {
    const RankStep* least = &ranks.front();
    double step_waits_ns = 0;
    for (const RankStep& step : ranks) {
      step_waits_ns += static_cast<double>(Waits(step));
      if (Waits(step) < Waits(*least)) least = &step;
    }
    const double caused_ns =
        step_waits_ns -
        static_cast<double>(Waits(*least)) * static_cast<double>(ranks.size());
    blame_[least->rank] += caused_ns;
    waits_ns += step_waits_ns;
    if (caused_ns > worst_ns_) {
      worst_ns_ = caused_ns;
      worst_ = least;
    }
  }
  if (waits_ns <= 0) blame_.clear();
  for (auto& [rank, blame] : blame_) blame /= waits_ns;
}

std::string Examiner::HostOf(int64_t rank) const {
  const auto process = trace_.processes.find(rank);
  return process == trace_.processes.end() ? "" : process->second.host;
}

bool Examiner::UsesNetwork() const {
  std::set<std::string> hosts;
  for (const auto& [rank, means] : ranks_) hosts.insert(HostOf(rank));
  if (hosts.size() < 2) return false;
  // Containers on one machine look like different hosts. Hierarchical
  // algorithms use shared memory inside hosts and the network between them.
  const auto in_memory = [](const Bucket& bucket) {
    return (absl::StartsWith(bucket.algorithm, "shared memory") ||
            absl::StartsWithIgnoreCase(bucket.algorithm, "shm")) &&
           !absl::StrContains(bucket.algorithm, "hierarchical");
  };
  return analysis_.buckets.empty() ||
         !std::all_of(analysis_.buckets.begin(), analysis_.buckets.end(),
                      in_memory);
}

void Examiner::Add(Finding finding) {
  // The negation also drops a NaN from a damaged trace.
  if (!(finding.share >= kLeastShare)) return;
  finding.share = std::min(finding.share, 1.0);
  if (finding.end_ns == 0 && worst_ != nullptr) {
    finding.start_ns = worst_->start_ns;
    finding.end_ns = worst_->end_ns();
  }
  findings_.push_back(std::move(finding));
}

bool Examiner::AddOversubscription() {
  constexpr double kLeastStarved = 0.05;
  std::map<std::string, std::set<int>> cpus;
  std::map<std::string, int64_t> ranks;
  for (const auto& [rank, means] : ranks_) {
    const TraceProcess& process = trace_.processes.at(rank);
    const std::set<int> own = CpusOf(process.TextFact("cpu_list"));
    cpus[process.host].insert(own.begin(), own.end());
    ++ranks[process.host];
  }
  for (const auto& [host, own] : cpus) {
    if (own.empty() || ranks[host] <= static_cast<int64_t>(own.size())) {
      continue;
    }
    const double starved =
        OfAll([](const RankMeans& means) { return means.compute_starved(); });
    const bool is_sampled = OfAll([](const RankMeans& means) {
                              return means.use.seconds;
                            }) > 0;
    // Ranks that rarely compute do not compete for the cores.
    if (is_sampled && starved < kLeastStarved) continue;
    const double lost = starved * Share(StepPart::kComputing) +
                        Share(StepPart::kWaitForRanks) +
                        Share(StepPart::kWaitForProgress);
    Add({.cause = "oversubscribed",
         .title = absl::StrCat(
             "Host ", host, " is oversubscribed: ", ranks[host],
             " ranks share ", own.size(), own.size() == 1 ? " core" : " cores"),
         .evidence = {is_sampled
                          ? absl::StrCat("computing threads waited for a core "
                                         "in ",
                                         Percent(starved),
                                         " of the time in which they could run")
                          : "this trace does not show how long threads waited "
                            "for a core",
                      absl::StrCat(Percent(Share(StepPart::kWaitForRanks)),
                                   " of a step is waiting for ranks")},
         .remedy = absl::StrCat(
             "start at most ", own.size(), own.size() == 1 ? " rank" : " ranks",
             " on this host (hvdliterun -np ", own.size(),
             "), or use more hosts; if you need more ranks, set "
             "OMP_NUM_THREADS=1"),
         .share = lost});
    return true;
  }
  return false;
}

void Examiner::AddStarvation() {
  // A delay costs nothing if the rank would have waited for others anyway.
  const auto main_loss = [this](const RankMeans& means) {
    const double computing = std::min(1.0, means.computing_ns / step_ns_);
    return std::max(
        0.0, means.use.main_delay * computing - means.wait_ns / step_ns_);
  };
  int64_t worst = -1;
  double worst_delay = 0;
  for (const auto& [rank, means] : ranks_) {
    const double delay = means.use.progress_delay + main_loss(means);
    if (delay > worst_delay) {
      worst_delay = delay;
      worst = rank;
    }
  }
  if (worst < 0) return;
  const RankMeans& means = ranks_.at(worst);
  // A thread that polls while it waits loses nothing by a delay. So the main
  // thread's delay counts while it computes, and the background thread's while
  // ranks wait for it. Between hosts, the data plane waits for the network.
  const double main = means.use.main_delay;
  const double for_progress = Share(StepPart::kWaitForProgress);
  const bool starves_main = main >= 0.08 && main_loss(means) > 0;
  const bool starves_progress =
      means.progress_starved() >= 0.3 && for_progress >= kLeastShare;
  if (!starves_main && !starves_progress) return;
  // Many small buckets keep the background thread busy anyway.
  const double waited =
      Has("small-buckets")
          ? 0
          : for_progress + (UsesNetwork() ? 0 : Share(StepPart::kDataPlane));
  const double lost =
      main_loss(means) + std::min(waited, means.use.progress_delay + main);
  const TraceProcess& process = trace_.processes.at(worst);
  const auto cpus = static_cast<double>(process.Fact("cpus", 0));
  const double others = OfOthers(
      worst, [](const RankMeans& other) { return other.use.main_delay; });
  const bool own_threads = cpus > 0 && means.use.threads > cpus + 0.5;
  Finding finding = {
      .cause = "starved-threads",
      .title = absl::StrCat(starves_main ? "Threads" : "The background thread",
                            " of rank ", worst, " (", HostOf(worst),
                            starves_main ? ") wait" : ") waits", " for a core",
                            starves_main && starves_progress
                                ? ", including the background thread"
                                : ""),
      .evidence = {absl::StrCat("its background thread waited for a core in ",
                                Percent(means.progress_starved()),
                                " of the time in which it could run"),
                   absl::StrCat("its main thread waited for a core in ",
                                Percent(main),
                                " of all time (mean of the other ranks: ",
                                Percent(others), ")"),
                   cpus > 0 ? absl::StrFormat(
                                  "%.1f of its threads compute, and it may use "
                                  "%.0f %s",
                                  means.use.threads, cpus,
                                  cpus == 1 ? "core" : "cores")
                            : absl::StrFormat("%.1f of its threads compute",
                                              means.use.threads)},
      .remedy =
          own_threads
              ? absl::StrFormat(
                    "use fewer threads: set OMP_NUM_THREADS=%.0f, and "
                    "OMP_WAIT_POLICY=passive so that waiting threads free "
                    "their cores; hvdliterun sets both",
                    std::max(cpus - 1, 1.0))
              : absl::StrCat(
                    "another program or rank runs on its cores, or its cgroup "
                    "has a CPU quota: run top and hvdlite_doctor on ",
                    HostOf(worst),
                    "; bind ranks with hvdliterun, and request whole nodes "
                    "from the batch system"),
      .share = lost,
      .rank = worst};
  Add(std::move(finding));
}

void Examiner::AddCommonInput() {
  if (Has("slow-input")) return;
  const double share = Share(StepPart::kInput);
  if (share < 0.05) return;
  Add({.cause = "slow-input",
       .title = ranks_.size() == 1 ? "Steps wait for their input"
                                   : "All ranks wait for their input",
       .evidence = {absl::StrCat("loading a mini-batch takes ",
                                 Duration(share * step_ns_), " of a step of ",
                                 Duration(step_ns_))},
       .remedy = kLoadAhead,
       .share = share});
}

void Examiner::AddProfiledCollectives() {
  double beside_ns = 0;  // collectives that run beside operators
  for (const RankStep& step : steps_) {
    beside_ns += static_cast<double>(step.hidden_ns);
  }
  const double alone = Share(StepPart::kDataPlane);
  const double share = alone + beside_ns / rank_steps_ / step_ns_;
  if (share < 0.2) return;
  Add({.cause = "profiled-collectives",
       .title = "Collectives run in a large part of a step",
       .evidence = {absl::StrCat(
           Duration(share * step_ns_), " of a step of ", Duration(step_ns_),
           ", including waits for other ranks; in ", Duration(alone * step_ns_),
           " of this time no operator runs. The profiler does not record when "
           "the application waits")},
       .remedy = "measure the step time of a single rank: the difference is "
                 "the cost of communication. hvdlite's own trace "
                 "(HVDLITE_TIMELINE) separates waiting for ranks from reducing",
       .share = share});
}

void Examiner::AddCommonFaults() {
  if (Has("page-faults")) return;
  const auto mean = [this](auto value) { return OfAll(value); };
  const double minor =
      mean([](const RankMeans& means) { return means.use.minor_faults; });
  const double major =
      mean([](const RankMeans& means) { return means.use.major_faults; });
  const double system =
      mean([](const RankMeans& means) { return means.use.system_cpu; });
  if (major < 20 && (minor < 3000 || system < 0.1)) return;
  const bool is_major = major >= 20;
  ResourceUse use;
  use.minor_faults = minor;
  use.major_faults = major;
  use.system_cpu = system;
  Add({.cause = "page-faults",
       .title = is_major ? "Memory is read back from disk"
                         : "Page faults keep the kernel busy",
       .evidence = {FaultsOf(use)},
       .remedy = FaultRemedy(is_major),
       .share =
           std::min(is_major ? system : FaultTime(minor, system),
                    Share(StepPart::kComputing) + Share(StepPart::kInput))});
}

double Examiner::FaultTime(double minor_faults, double system_cpu) {
  // The kernel clears a page in 1 us or less; a huge page takes longer.
  constexpr double kMostSeconds = 10e-6;
  return std::min(system_cpu, minor_faults * kMostSeconds);
}

std::string Examiner::FaultsOf(const ResourceUse& use) {
  return absl::StrFormat(
      "%.0f minor and %.0f major page faults per second; the kernel uses %s of "
      "a core",
      use.minor_faults, use.major_faults, Percent(use.system_cpu));
}

std::string Examiner::FaultRemedy(bool is_major) {
  return is_major ? "the host has too little memory: use smaller mini-batches "
                    "or fewer ranks per host; check swap with hvdlite_doctor"
                  : "keep freed memory in the process: set "
                    "MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=-1, or preload "
                    "tcmalloc; check huge pages with hvdlite_doctor";
}

void Examiner::AddEvaluation() {
  if (Has("evaluation")) return;
  const double share = Share(StepPart::kOther);
  if (share < 0.2) return;
  Add({.cause = "evaluation",
       .title = "Evaluation and commits take a large part of the time",
       .evidence = {absl::StrCat(Duration(share * step_ns_),
                                 " per step on average")},
       .remedy = "evaluate and commit less often",
       .share = share});
}

void Examiner::AddStart() {
  const std::optional<StartUp> start = FindStartUp(analysis_);
  if (!start.has_value() || start->share < 0.25) return;
  Add({.cause = "start-up",
       .title = "The start takes a large part of the run",
       .evidence = {absl::StrCat(
           "the first step ended after ",
           Duration(static_cast<double>(start->end_ns - start->start_ns)),
           "; a later step takes ", Duration(start->step_ns))},
       .remedy = "for a short trial, nothing; for a long run, load and "
                 "preprocess the data in advance",
       .share = start->share,
       .of_run = true,
       .start_ns = start->start_ns,
       .end_ns = start->end_ns});
}

bool Examiner::Has(absl::string_view cause) const {
  return std::any_of(
      findings_.begin(), findings_.end(),
      [&](const Finding& finding) { return finding.cause == cause; });
}

std::vector<Finding> FindCauses(const Trace& trace,
                                const StepAnalysis& analysis) {
  const bool is_ours =
      std::any_of(trace.processes.begin(), trace.processes.end(),
                  [](const auto& process) { return process.second.is_rank; });
  if (!is_ours && analysis.source == StepSource::kWhole) {
    return FindNegotiationCauses(trace);
  }
  if (analysis.source == StepSource::kProfiler) {
    return Examiner(trace, analysis).ExamineProfile();
  }
  if (analysis.source != StepSource::kRecorded || !analysis.knows_waits) {
    return {};
  }
  return Examiner(trace, analysis).Examine();
}

}  // namespace hvdlite::timeline
