#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "support/machine.h"
#include "tools/doctor/check.h"
#include "tools/doctor/checks/core_peak.h"
#include "tools/doctor/checks/gather_facts.h"
#include "tools/doctor/checks/software_checks.h"

namespace hvdlite::doctor {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BlasSpeed, gflops, peak_gflops, core, remedy)

namespace {

// At this size good kernels reach 60 to 95 % of the peak, kernels for other
// vectors 12 to 45 %, and the reference BLAS 3 %.
constexpr double kGoodRatio = 0.5;
constexpr double kBadRatio = 0.2;
constexpr int kSize = 768;
constexpr double kSeconds = 0.1;

// Multiplies square matrices for 100 ms, at least twice. The first product does
// not count: it touches the memory and starts threads.
double MeasureGflops(const LoadedBlas& blas) {
  std::vector<float> a(size_t{kSize} * kSize, 0.5F);
  std::vector<float> b(a.size(), 0.25F);
  std::vector<float> c(a.size(), 0);
  const float one = 1;
  const float zero = 0;
  const int size = kSize;
  const auto multiply = [&] {
    blas.sgemm("N", "N", &size, &size, &size, &one, a.data(), &size, b.data(),
               &size, &zero, c.data(), &size);
  };
  multiply();
  const double start = support::ThreadCpuSeconds();
  double seconds = 0;
  int products = 0;
  do {
    multiply();
    ++products;
    seconds = support::ThreadCpuSeconds() - start;
  } while (seconds < kSeconds);
  return 2e-9 * kSize * kSize * kSize * products / seconds;
}

std::string Range(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const std::string from = absl::StrFormat("%.3g", *low);
  const std::string to = absl::StrFormat("%.3g", *high);
  return from == to ? from : absl::StrCat(from, " to ", to);
}

// The share of the peak; 1 if the peak is not known.
double RatioOf(const BlasSpeed& speed) {
  return speed.peak_gflops > 0 ? speed.gflops / speed.peak_gflops : 1;
}

Verdict VerdictOf(const BlasSpeed& speed) {
  const double ratio = RatioOf(speed);
  return ratio >= kGoodRatio  ? Verdict::kOk
         : ratio >= kBadRatio ? Verdict::kWarning
                              : Verdict::kProblem;
}

}  // namespace

std::vector<Finding> JudgeBlasSpeed(const std::vector<BlasSpeed>& of_rank) {
  // The map is sorted from the worst verdict to the best.
  std::map<Verdict, std::vector<int>, std::greater<>> ranks_with;
  for (size_t rank = 0; rank < of_rank.size(); ++rank) {
    if (of_rank[rank].gflops <= 0) continue;
    ranks_with[VerdictOf(of_rank[rank])].push_back(static_cast<int>(rank));
  }
  std::vector<Finding> findings;
  for (auto& [verdict, ranks] : ranks_with) {
    std::vector<double> gflops;
    std::vector<double> percent;
    for (const int rank : ranks) {
      gflops.push_back(of_rank[rank].gflops);
      percent.push_back(100 * RatioOf(of_rank[rank]));
    }
    const BlasSpeed& first = of_rank[ranks.front()];
    Finding finding = {
        .verdict = verdict,
        .seen = absl::StrCat(
            "a matrix product with one thread: ", Range(gflops), " GFLOP/s",
            first.peak_gflops > 0
                ? absl::StrCat(", ", Range(percent), " % of the core's peak (",
                               first.core, ")")
                : "; the core's peak cannot be measured here")};
    const auto known = std::find_if(ranks.begin(), ranks.end(), [&](int rank) {
      return !of_rank[rank].remedy.empty();
    });
    if (verdict != Verdict::kOk) {
      finding.remedy =
          known != ranks.end()
              ? absl::StrCat(of_rank[*known].remedy, " (see the check blas)")
              : "hvdlite_doctor --check slow_core (the check blas finds "
                "no better kernels)";
    }
    finding.ranks = std::move(ranks);
    findings.push_back(std::move(finding));
  }
  if (findings.empty()) {
    findings.push_back({.verdict = Verdict::kNote,
                        .seen = "there is no BLAS to measure",
                        .ranks = RanksUpTo(of_rank.size())});
  }
  return findings;
}

absl::StatusOr<Findings> RunBlasSpeed(Session& session) {
  HVDLITE_RETURN_IF_ERROR(session.communicator.Barrier());
  BlasSpeed speed;
  if (session.blas.sgemm != nullptr) {
    if (session.blas.set_threads != nullptr) session.blas.set_threads(1);
    const CorePeak peak = MeasureCorePeak();
    speed = {
        .gflops = MeasureGflops(session.blas),
        .peak_gflops = peak.gflops(),
        .core = absl::StrFormat("%.2f GHz, vectors of %d floats (%s), %d %s",
                                peak.ghz, peak.lanes, peak.vectors, peak.units,
                                peak.units == 1 ? "unit" : "units")};
    const Finding kernels = BlasFindingOf(session);
    if (kernels.verdict == Verdict::kProblem) speed.remedy = kernels.remedy;
  }
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<BlasSpeed> speeds,
                           GatherFacts<BlasSpeed>(session, speed));
  if (session.topology.rank != 0) return Findings();
  return JudgeBlasSpeed(speeds);
}

}  // namespace hvdlite::doctor
