#include "timeline/findings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "timeline/trace_event.h"

namespace hvdlite::timeline {
namespace {

// What costs less of a step is not told.
constexpr double kLeastShare = 1.0 / 30;

// Steps are never equally long: some waiting for ranks is no finding.
constexpr double kLeastWaiting = 0.08;

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

// The CPUs of "0-2,5"; what is no number is left out.
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

// Means per step of one rank, and its resources.
struct RankMeans {
  double computing_ns = 0;
  double input_ns = 0;
  double other_ns = 0;
  double wait_ns = 0;
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

// Examines a trace of hvdlite's with steps.
class Examiner {
 public:
  Examiner(const Trace& trace, const StepAnalysis& analysis)
      : trace_(trace), analysis_(analysis), steps_(analysis.SteadySteps()) {
    const PartTimes sums = SumOfParts(steps_);
    const auto total_ns = static_cast<double>(TotalNs(sums));
    for (size_t i = 0; i < kStepParts; ++i) {
      shares_[i] = total_ns > 0 ? static_cast<double>(sums[i]) / total_ns : 0;
    }
    std::map<int64_t, int64_t> counts;
    for (const RankStep& step : steps_) {
      counts[step.rank] += step.count;
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
      const auto use = analysis.resources.find(rank);
      if (use != analysis.resources.end()) means.use = use->second;
    }
    step_ns_ = rank_steps_ > 0 ? total_ns / rank_steps_ : 0;
    FindBlame();
  }

  std::vector<Finding> Examine() {
    if (steps_.empty() || step_ns_ <= 0) return {};
    if (!AddOversubscription()) {
      AddSmallBatches();
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

 private:
  double Share(StepPart part) const {
    return shares_[static_cast<size_t>(part)];
  }

  // In each step the rank that waited least is the one that the others waited
  // for; it is to blame for what they waited longer than it.
  void FindBlame() {
    double waits_ns = 0;
    for (size_t i = 0; i < steps_.size();) {
      size_t end = i;
      size_t least = i;
      double step_waits_ns = 0;
      for (; end < steps_.size() && steps_[end].number == steps_[i].number;
           ++end) {
        step_waits_ns += static_cast<double>(Waits(steps_[end]));
        if (Waits(steps_[end]) < Waits(steps_[least])) least = end;
      }
      const double caused_ns =
          step_waits_ns - static_cast<double>(Waits(steps_[least])) *
                              static_cast<double>(end - i);
      blame_[steps_[least].rank] += caused_ns;
      waits_ns += step_waits_ns;
      if (caused_ns > worst_ns_) {
        worst_ns_ = caused_ns;
        worst_ = &steps_[least];
      }
      i = end;
    }
    if (waits_ns <= 0) blame_.clear();
    for (auto& [rank, blame] : blame_) blame /= waits_ns;
  }

  static int64_t Waits(const RankStep& step) {
    return At(step.parts, StepPart::kWaitForRanks);
  }

  std::string HostOf(int64_t rank) const {
    const auto process = trace_.processes.find(rank);
    return process == trace_.processes.end() ? "" : process->second.host;
  }

  bool AreSeveralHosts() const {
    std::set<std::string> hosts;
    for (const auto& [rank, means] : ranks_) hosts.insert(HostOf(rank));
    return hosts.size() > 1;
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

  void Add(Finding finding) {
    // Also if a damaged trace makes it no number.
    if (!(finding.share >= kLeastShare)) return;
    finding.share = std::min(finding.share, 1.0);
    if (finding.end_ns == 0 && worst_ != nullptr) {
      finding.start_ns = worst_->start_ns;
      finding.end_ns = worst_->end_ns();
    }
    findings_.push_back(std::move(finding));
  }

  // More ranks compute on a host than it has cores.
  bool AddOversubscription() {
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
      const double lost = starved * Share(StepPart::kComputing) +
                          Share(StepPart::kWaitForRanks) +
                          Share(StepPart::kWaitForProgress);
      Add({.cause = "oversubscribed",
           .title = absl::StrCat("Host ", host, " is oversubscribed: ",
                                 ranks[host], " ranks share ", own.size(),
                                 own.size() == 1 ? " core" : " cores"),
           .evidence = {absl::StrCat(
                            "computing threads could run but had no core in ",
                            Percent(starved), " of that time"),
                        absl::StrCat(
                            Percent(Share(StepPart::kWaitForRanks)),
                            " of a step waits for ranks that others keep from "
                            "the cores")},
           .remedy = absl::StrCat("start at most ", own.size(),
                                  own.size() == 1 ? " rank" : " ranks",
                                  " there: hvdliterun -np ", own.size(),
                                  ", or more hosts"),
           .share = lost});
      return true;
    }
    return false;
  }

  // Threads of a rank wait for a core: the progress thread, and with it all
  // communication, or those that compute.
  void AddStarvation() {
    int64_t worst = -1;
    double worst_delay = 0;
    for (const auto& [rank, means] : ranks_) {
      const double delay = means.use.progress_delay + means.use.main_delay;
      if (delay > worst_delay) {
        worst_delay = delay;
        worst = rank;
      }
    }
    if (worst < 0) return;
    const RankMeans& means = ranks_.at(worst);
    // A thread that polls while it waits loses nothing by a delay: of the main
    // thread's counts what falls on computing, of the progress thread's what
    // others wait for. Between hosts the data plane waits for the network.
    const double main = means.use.main_delay;
    const double for_progress = Share(StepPart::kWaitForProgress);
    const bool starves_main = main >= 0.08;
    const bool starves_progress =
        means.progress_starved() >= 0.3 && for_progress >= kLeastShare;
    if (!starves_main && !starves_progress) return;
    // Many small batches keep it busy themselves.
    const double waited =
        Has("small-batches")
            ? 0
            : for_progress +
                  (AreSeveralHosts() ? 0 : Share(StepPart::kDataPlane));
    const double lost = main * std::min(1.0, means.computing_ns / step_ns_) +
                        std::min(waited, means.use.progress_delay + main);
    const TraceProcess& process = trace_.processes.at(worst);
    const auto cpus = static_cast<double>(process.Fact("cpus", 0));
    const bool own_threads = cpus > 0 && means.use.threads > cpus + 0.5;
    Finding finding = {
        .cause = "starved-threads",
        .title =
            absl::StrCat("Threads of rank ", worst, " (", HostOf(worst),
                         ") wait for a core, the progress thread among them"),
        .evidence = {absl::StrCat("its progress thread had no core in ",
                                  Percent(means.progress_starved()),
                                  " of the time in which it could have run"),
                     absl::StrCat(
                         "its main thread had none in ", Percent(main),
                         " of all time; on the other ranks ",
                         Percent(OfOthers(worst,
                                          [](const RankMeans& other) {
                                            return other.use.main_delay;
                                          }))),
                     absl::StrFormat("%.1f of its threads compute on %.0f %s",
                                     means.use.threads, cpus,
                                     cpus == 1 ? "core" : "cores")},
        .remedy =
            own_threads
                ? absl::StrFormat(
                      "fewer threads: OMP_NUM_THREADS=%.0f, and "
                      "OMP_WAIT_POLICY=passive so that threads that wait leave "
                      "the cores; or hvdliterun, which sets both",
                      std::max(cpus - 1, 1.0))
                : absl::StrCat(
                      "another program runs on its cores: look at ",
                      HostOf(worst),
                      " with top, then hvdlite_doctor there; bind ranks with "
                      "hvdliterun, and ask the queue for whole nodes"),
        .share = lost,
        .rank = worst};
    Add(std::move(finding));
  }

  // Ranks wait for a rank that submits its gradients later than the others.
  void AddLateRank() {
    if (blame_.empty() || Share(StepPart::kWaitForRanks) < kLeastWaiting) {
      return;
    }
    const auto worst = std::max_element(
        blame_.begin(), blame_.end(),
        [](const auto& a, const auto& b) { return a.second < b.second; });
    const double share = Share(StepPart::kWaitForRanks);
    // Of two ranks either has half the blame by chance.
    const double fair = 1.0 / static_cast<double>(ranks_.size());
    if (worst->second < fair + 0.5 * (1 - fair)) {
      AddUnevenData(share);
      return;
    }
    const int64_t rank = worst->first;
    const RankMeans& own = ranks_.at(rank);
    const auto excess = [&](auto value) {
      return value(own) - OfOthers(rank, value);
    };
    const double computing =
        excess([](const RankMeans& means) { return means.computing_ns; });
    const double input =
        excess([](const RankMeans& means) { return means.input_ns; });
    const double other =
        excess([](const RankMeans& means) { return means.other_ns; });
    // It is late because its threads lack a core, and that has been told.
    const double starved_ns =
        (own.use.main_delay - OfOthers(rank,
                                       [](const RankMeans& means) {
                                         return means.use.main_delay;
                                       })) *
        step_ns_;
    if (Has("starved-threads") && starved_ns > 0.5 * (computing + input)) {
      return;
    }
    Finding finding = {.cause = "straggler",
                       .title = "",
                       .evidence = {absl::StrCat("the others wait for it in ",
                                                 Percent(worst->second),
                                                 " of the time in which "
                                                 "ranks wait for ranks")},
                       .remedy = "",
                       .share = share,
                       .rank = rank};
    const std::string who =
        absl::StrCat("Rank ", rank, " (", HostOf(rank), ")");
    const double faults =
        excess([](const RankMeans& means) { return means.use.minor_faults; });
    const double major =
        excess([](const RankMeans& means) { return means.use.major_faults; });
    const double system =
        excess([](const RankMeans& means) { return means.use.system_cpu; });
    if (input > computing && input > other) {
      finding.cause = "slow-input";
      finding.title = absl::StrCat(who, " loads its data more slowly");
      finding.evidence.push_back(absl::StrCat(
          "loading takes ", Duration(own.input_ns), " a step there, ",
          Duration(own.input_ns - input), " on the others"));
      finding.remedy = absl::StrCat(
          "look at what ", HostOf(rank),
          " reads from (a slow disk or mount), stage the data there, or load "
          "ahead in more threads (--workers)");
    } else if (other > computing) {
      finding.cause = "evaluation";
      finding.title =
          absl::StrCat(who, " evaluates or saves while the others wait");
      finding.evidence.push_back(absl::StrCat(
          "evaluation and commits take ", Duration(own.other_ns),
          " a step there, ", Duration(own.other_ns - other), " on the others"));
      finding.remedy =
          "evaluate on all ranks (a share of the samples each), commit less "
          "often";
    } else if (major > 20 || (faults > 3000 && system > 0.1)) {
      finding.cause = "page-faults";
      finding.title = absl::StrCat(who, " is slowed down by page faults");
      finding.evidence.push_back(FaultsOf(own.use));
      finding.remedy = FaultRemedy(major > 20);
    } else {
      finding.title = absl::StrCat(who, " is slower than the others");
      finding.evidence.push_back(absl::StrCat(
          "computing takes ", Duration(own.computing_ns), " a step there, ",
          Duration(own.computing_ns - computing), " on the others"));
      AddKindOfSlowness(own, rank, &finding);
    }
    Add(std::move(finding));
  }

  // Does the slow rank compute all the time, or does it block?
  void AddKindOfSlowness(const RankMeans& own, int64_t rank,
                         Finding* finding) const {
    const double computing = own.computing_ns / step_ns_;
    const double running = computing > 0 ? own.use.main_cpu / computing : 1;
    if (own.use.seconds > 0 && running < 0.7) {
      finding->evidence.push_back(absl::StrCat(
          "its main thread runs in ", Percent(running),
          " of the time that counts as computing, and is not short of cores: "
          "it sleeps or waits for something else"));
      finding->remedy = absl::StrCat(
          "see what it waits for: kill -USR1 its process prints its stacks; "
          "mark suspects with hvdlite::TraceSpan");
      return;
    }
    if (own.use.seconds > 0) {
      finding->evidence.push_back(
          "its threads have their cores: it has more to compute, or slower "
          "cores");
    }
    finding->remedy = absl::StrCat(
        "give all ranks the same batch; then hvdlite_doctor on ", HostOf(rank),
        " (frequency, BLAS, binding), and leave that host out if it stays "
        "slow");
  }

  void AddUnevenData(double share) {
    // How much the time to compute differs between the ranks of a step.
    double spread_ns = 0;
    double steps = 0;
    for (size_t i = 0; i < steps_.size();) {
      size_t end = i;
      int64_t least_ns = ComputingNs(steps_[i]);
      int64_t most_ns = least_ns;
      for (; end < steps_.size() && steps_[end].number == steps_[i].number;
           ++end) {
        least_ns = std::min(least_ns, ComputingNs(steps_[end]));
        most_ns = std::max(most_ns, ComputingNs(steps_[end]));
      }
      spread_ns += static_cast<double>(most_ns - least_ns);
      ++steps;
      i = end;
    }
    std::vector<std::string> blames;
    for (const auto& [rank, blame] : blame_) {
      if (blames.size() < 8) {
        blames.push_back(absl::StrCat("rank ", rank, " ", Percent(blame)));
      }
    }
    Add({.cause = "uneven-data",
         .title = "Ranks take turns in being late: their steps differ in work",
         .evidence = {absl::StrCat("within a step, computing differs by ",
                                   Duration(spread_ns / steps),
                                   " between the fastest and the slowest rank"),
                      absl::StrCat("of the waits for ranks, last was: ",
                                   absl::StrJoin(blames, ", "))},
         .remedy =
             "give ranks batches of equal work: bucket samples by length, or "
             "sort them by cost before they are dealt out",
         .share = share});
  }

  static int64_t ComputingNs(const RankStep& step) {
    return At(step.parts, StepPart::kComputing) +
           At(step.parts, StepPart::kInput);
  }

  // Batches are so small that what each costs, whatever its size, dominates.
  void AddSmallBatches() {
    constexpr double kSmallBytes = 256 << 10;
    constexpr double kManyPerStep = 8;
    const double batches = analysis_.batches_per_step;
    const double bytes = analysis_.bytes_per_step;
    if (batches < kManyPerStep || bytes / batches > kSmallBytes ||
        bytes < 2 * kSmallBytes) {
      return;
    }
    int64_t threshold = -1;
    int64_t least = -1;
    for (const auto& [rank, means] : ranks_) {
      const TraceProcess& process = trace_.processes.at(rank);
      threshold = process.Fact("fusion_threshold_bytes", -1);
      least = process.Fact("min_batch_bytes", -1);
    }
    const bool is_threshold =
        threshold >= 0 && static_cast<double>(threshold) < bytes / 2;
    std::vector<std::string> evidence = {absl::StrFormat(
        "%.0f batches a step, of %s on average; a step's gradients are %s",
        batches, Bytes(bytes / batches), Bytes(bytes))};
    if (is_threshold) {
      evidence.push_back(
          absl::StrCat("HVDLITE_FUSION_THRESHOLD_BYTES is ", threshold));
    } else if (least >= 0) {
      evidence.push_back(absl::StrCat("HVDLITE_MIN_BATCH_BYTES is ", least));
    }
    // All but one batch a step could be spared.
    const double spared = 1 - 1 / batches;
    Add({.cause = "small-batches",
         .title = "Gradients travel in batches that are too small",
         .evidence = std::move(evidence),
         .remedy = is_threshold
                       ? "leave HVDLITE_FUSION_THRESHOLD_BYTES at its default "
                         "(64 MB)"
                       : "HVDLITE_MIN_BATCH_BYTES=1048576, so that gradients "
                         "gather",
         .share = spared *
                  (Share(StepPart::kWaitForProgress) +
                   Share(StepPart::kDataPlane) + Share(StepPart::kCopies))});
  }

  // The data plane itself takes long, although threads have their cores.
  void AddDataPlane() {
    const bool across = AreSeveralHosts();
    const double share = Share(StepPart::kDataPlane) + Share(StepPart::kCopies);
    // Inside a host, reducing is work for the cores that compute.
    const double usual = across ? 0.1 : 0.2;
    if (share < usual || Has("oversubscribed") || Has("small-batches") ||
        (Has("starved-threads") && !across)) {
      return;
    }
    const double batches = analysis_.batches_per_step;
    const double bytes = analysis_.bytes_per_step;
    if (batches <= 0) return;
    double exposed_ns = share * step_ns_;
    double hidden_ns = 0;
    for (const RankStep& step : steps_) {
      hidden_ns += static_cast<double>(step.hidden_ns);
    }
    hidden_ns /= rank_steps_;
    const double rate = bytes / (exposed_ns + hidden_ns) * 1e9;
    std::vector<std::string> evidence = {
        absl::StrFormat("%s of gradients a step in %.1f batches, at %s/s",
                        Bytes(bytes), batches, Bytes(rate)),
        absl::StrCat(Duration(hidden_ns),
                     " of communication a step is hidden behind computing, ",
                     Duration(exposed_ns), " is not")};
    const double backward_hides = hidden_ns / (exposed_ns + hidden_ns);
    int64_t least = 0;
    for (const auto& [rank, means] : ranks_) {
      least = trace_.processes.at(rank).Fact("min_batch_bytes", 0);
    }
    // What takes longer than computing cannot hide behind it.
    if (backward_hides < 0.1 && static_cast<double>(least) > bytes / 3 &&
        share <= Share(StepPart::kComputing)) {
      evidence.push_back(absl::StrCat("HVDLITE_MIN_BATCH_BYTES is ", least,
                                      ": nearly all gradients of a step"));
      Add({.cause = "late-batches",
           .title = "Batches begin when the backward pass is over",
           .evidence = std::move(evidence),
           .remedy = absl::StrFormat("HVDLITE_MIN_BATCH_BYTES=%.0f or less",
                                     bytes / 8),
           .share = share});
      return;
    }
    Add({.cause = "slow-data-plane",
         .title = across ? "The network between the hosts limits the steps"
                         : "Reducing the gradients limits the steps",
         .evidence = std::move(evidence),
         .remedy = across
                       ? "check the interface and its speed (hvdlite_doctor, "
                         "hvdlite_bench collectives); then send less: "
                         "Compression::FP16, larger batches, or "
                         "backward_passes_per_step"
                       : "send less often: larger batches or "
                         "backward_passes_per_step;"
                         " check memory binding with hvdlite_doctor",
         .share = share});
  }

  void AddCommonInput() {
    if (Has("slow-input")) return;
    const double share = Share(StepPart::kInput);
    if (share < 0.05) return;
    Add({.cause = "slow-input",
         .title = "All ranks wait for their input",
         .evidence = {absl::StrCat("loading a batch takes ",
                                   Duration(share * step_ns_), " of a step of ",
                                   Duration(step_ns_))},
         .remedy = "load ahead in more threads (--workers), keep the data on a "
                   "fast disk or in memory, decode less",
         .share = share});
  }

  void AddCommonFaults() {
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
                           : "The kernel is kept busy by page faults",
         .evidence = {FaultsOf(use)},
         .remedy = FaultRemedy(is_major),
         .share = std::min(
             system, Share(StepPart::kComputing) + Share(StepPart::kInput))});
  }

  static std::string FaultsOf(const ResourceUse& use) {
    return absl::StrFormat(
        "%.0f minor and %.0f major page faults a second on a rank; the kernel "
        "takes %s of a core",
        use.minor_faults, use.major_faults, Percent(use.system_cpu));
  }

  static std::string FaultRemedy(bool is_major) {
    return is_major
               ? "the memory does not suffice: smaller batches, fewer ranks "
                 "a host; look at swap with hvdlite_doctor"
               : "keep freed memory: MALLOC_TRIM_THRESHOLD_=1073741824 "
                 "MALLOC_MMAP_THRESHOLD_=33554432, or preload tcmalloc; "
                 "look at huge pages with hvdlite_doctor";
  }

  void AddEvaluation() {
    if (Has("evaluation")) return;
    const double share = Share(StepPart::kOther);
    if (share < 0.2) return;
    Add({.cause = "evaluation",
         .title = "Evaluation and commits take a large part of the time",
         .evidence = {absl::StrCat(Duration(share * step_ns_),
                                   " a step on average")},
         .remedy = "evaluate and commit less often",
         .share = share});
  }

  // The time until the first step is over, beyond what a step takes.
  void AddStart() {
    const RankStep& begin = analysis_.steps.front();
    if (begin.number != 1 || begin.count != 1) return;
    int64_t first_ns = begin.start_ns;
    int64_t end_ns = first_ns;
    int64_t started_ns = first_ns;
    for (const RankStep& step : analysis_.steps) {
      first_ns = std::min(first_ns, step.start_ns);
      end_ns = std::max(end_ns, step.end_ns());
      if (step.number == 1) started_ns = std::max(started_ns, step.end_ns());
    }
    const double start_ns =
        static_cast<double>(started_ns - first_ns) - step_ns_;
    const double share = start_ns / static_cast<double>(end_ns - first_ns);
    if (share < 0.25) return;
    Add({.cause = "start-up",
         .title = "Much of this run is its start",
         .evidence = {absl::StrCat(
             "the first step was over after ",
             Duration(static_cast<double>(started_ns - first_ns)),
             "; a later one takes ", Duration(step_ns_))},
         .remedy = "nothing, if the run was a short trial; else load and "
                   "preprocess data ahead",
         .share = share,
         .of_run = true,
         .start_ns = first_ns,
         .end_ns = started_ns});
  }

  bool Has(absl::string_view cause) const {
    return std::any_of(
        findings_.begin(), findings_.end(),
        [&](const Finding& finding) { return finding.cause == cause; });
  }

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

}  // namespace

std::vector<Finding> FindCauses(const Trace& trace,
                                const StepAnalysis& analysis) {
  const bool is_ours =
      std::any_of(trace.processes.begin(), trace.processes.end(),
                  [](const auto& process) { return process.second.is_rank; });
  if (!is_ours && analysis.source == StepSource::kWhole) {
    return FindNegotiationCauses(trace);
  }
  if (analysis.source != StepSource::kRecorded || !analysis.knows_waits) {
    return {};
  }
  return Examiner(trace, analysis).Examine();
}

}  // namespace hvdlite::timeline
