#include "tools/doctor/blas_speed_check.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/doctor/check.h"
#include "tools/doctor/core_peak.h"
#include "tools/doctor/cpu_time.h"
#include "tools/doctor/gather_facts.h"

namespace hvdlite::doctor {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BlasSpeed, gflops, peak_gflops, core)

namespace {

constexpr char kName[] = "blas_speed";
// Good kernels reach 60 to 95 % of the peak at this size; kernels for other
// vectors 12 to 45 %; the reference BLAS 3 %.
constexpr double kGoodRatio = 0.5;
constexpr double kBadRatio = 0.2;
constexpr int kSize = 768;
constexpr double kSeconds = 0.1;

// Products of square matrices for 100 ms, two at least; the first, in which
// memory is touched and threads start, does not count.
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
  const double start = ThreadCpuSeconds();
  double seconds = 0;
  int products = 0;
  do {
    multiply();
    ++products;
    seconds = ThreadCpuSeconds() - start;
  } while (seconds < kSeconds);
  return 2e-9 * kSize * kSize * kSize * products / seconds;
}

std::string Range(double low, double high) {
  if (absl::StrFormat("%.3g", low) == absl::StrFormat("%.3g", high)) {
    return absl::StrFormat("%.3g", low);
  }
  return absl::StrFormat("%.3g to %.3g", low, high);
}

}  // namespace

std::vector<Finding> JudgeBlasSpeed(
    const std::vector<BlasSpeed>& of_rank,
    absl::Span<const std::string> host_of_rank) {
  std::vector<double> gflops;
  for (const BlasSpeed& speed : of_rank) {
    if (speed.gflops > 0) gflops.push_back(speed.gflops);
  }
  if (gflops.empty()) {
    return {{.check = kName,
             .verdict = Verdict::kNote,
             .seen = "no BLAS to measure"}};
  }
  const auto [low, high] = std::minmax_element(gflops.begin(), gflops.end());
  std::vector<Finding> findings;
  std::vector<int> good;
  double lowest_ratio = 1;
  double highest_ratio = 0;
  for (size_t rank = 0; rank < of_rank.size(); ++rank) {
    const BlasSpeed& speed = of_rank[rank];
    if (speed.gflops <= 0) continue;
    const double ratio =
        speed.peak_gflops > 0 ? speed.gflops / speed.peak_gflops : 1;
    if (ratio >= kGoodRatio) {
      good.push_back(static_cast<int>(rank));
      lowest_ratio = std::min(lowest_ratio, ratio);
      highest_ratio = std::max(highest_ratio, ratio);
      continue;
    }
    findings.push_back(
        {.check = kName,
         .verdict = ratio < kBadRatio ? Verdict::kProblem : Verdict::kWarning,
         .seen = absl::StrFormat(
             "rank %d on %s: a matrix product of one thread runs at %.3g "
             "GFLOP/s, %.0f %% of its core's peak of %.4g (%s)",
             rank, host_of_rank[rank], speed.gflops, 100 * ratio,
             speed.peak_gflops, speed.core),
         .remedy = "use a BLAS with kernels for this processor: see the check "
                   "blas; if its kernels fit, the check slow_core",
         .ranks = {static_cast<int>(rank)}});
  }
  if (good.empty()) return findings;
  const BlasSpeed& first = of_rank[good.front()];
  findings.push_back(
      {.check = kName,
       .seen = absl::StrCat(
           "a matrix product of one thread: ", Range(*low, *high), " GFLOP/s",
           first.peak_gflops > 0
               ? absl::StrCat(", ",
                              Range(100 * lowest_ratio, 100 * highest_ratio),
                              " % of the core's peak (", first.core, ")")
               : "; the core's peak cannot be measured here"),
       .ranks = good});
  return findings;
}

absl::StatusOr<Findings> CheckBlasSpeed(Session& session) {
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
  }
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<BlasSpeed> speeds,
                           GatherFacts<BlasSpeed>(session, speed));
  if (session.topology.rank != 0) return Findings();
  return JudgeBlasSpeed(speeds, session.topology.host_of_rank);
}

}  // namespace hvdlite::doctor
