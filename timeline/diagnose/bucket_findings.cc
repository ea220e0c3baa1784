// Findings about buckets that are too small, start too late, or are slow.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "timeline/diagnose/examiner.h"

namespace hvdlite::timeline {

void Examiner::AddSmallBuckets() {
  constexpr double kSmallBytes = 256 << 10;
  constexpr double kManyPerStep = 8;
  const double buckets = analysis_.buckets_per_step;
  const double bytes = analysis_.bytes_per_step;
  if (buckets < kManyPerStep || bytes / buckets > kSmallBytes ||
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
      "%.0f buckets per step of %s on average; the gradients of a step have %s",
      buckets, Bytes(bytes / buckets), Bytes(bytes))};
  if (is_threshold) {
    evidence.push_back(
        absl::StrCat("HVDLITE_FUSION_THRESHOLD_BYTES is ", threshold));
  } else if (least >= 0) {
    evidence.push_back(absl::StrCat("HVDLITE_MIN_BATCH_BYTES is ", least));
  }
  // One bucket per step would suffice.
  const double spared = 1 - 1 / buckets;
  Add({.cause = "small-buckets",
       .title = "The buckets of gradients are too small",
       .evidence = std::move(evidence),
       .remedy = is_threshold
                     ? "unset HVDLITE_FUSION_THRESHOLD_BYTES (default: 64 MB)"
                     : "set HVDLITE_MIN_BATCH_BYTES=1048576, so that a bucket "
                       "collects more gradients",
       .share =
           spared * (Share(StepPart::kWaitForProgress) +
                     Share(StepPart::kDataPlane) + Share(StepPart::kCopies))});
}

void Examiner::AddDataPlane() {
  const bool across = UsesNetwork();
  const double share = Share(StepPart::kDataPlane) + Share(StepPart::kCopies);
  // Inside a host, the cores that compute also reduce: more is normal.
  const double usual = across ? 0.1 : 0.2;
  if (share < usual || Has("oversubscribed") || Has("small-buckets") ||
      (Has("starved-threads") && !across)) {
    return;
  }
  const double buckets = analysis_.buckets_per_step;
  const double bytes = analysis_.bytes_per_step;
  if (buckets <= 0) return;
  double exposed_ns = share * step_ns_;
  double hidden_ns = 0;
  for (const RankStep& step : steps_) {
    hidden_ns += static_cast<double>(step.hidden_ns);
  }
  hidden_ns /= rank_steps_;
  const double rate = bytes / (exposed_ns + hidden_ns) * 1e9;
  std::vector<std::string> evidence = {
      absl::StrFormat("%s of gradients per step in %.1f buckets, at %s/s",
                      Bytes(bytes), buckets, Bytes(rate)),
      absl::StrCat(Duration(hidden_ns),
                   " of communication per step is hidden behind computing, ",
                   Duration(exposed_ns), " is not")};
  const double backward_hides = hidden_ns / (exposed_ns + hidden_ns);
  int64_t least = 0;
  for (const auto& [rank, means] : ranks_) {
    least = trace_.processes.at(rank).Fact("min_batch_bytes", 0);
  }
  // Reducing that takes longer than computing cannot hide behind it.
  if (backward_hides < 0.1 && static_cast<double>(least) > bytes / 3 &&
      share <= Share(StepPart::kComputing)) {
    evidence.push_back(absl::StrCat("HVDLITE_MIN_BATCH_BYTES is ", least,
                                    ", a large part of a step's gradients"));
    Add({.cause = "late-buckets",
         .title = "Buckets start only after the backward pass",
         .evidence = std::move(evidence),
         .remedy = absl::StrFormat("set HVDLITE_MIN_BATCH_BYTES=%.0f or less",
                                   bytes / 8),
         .share = share});
    return;
  }
  // A background thread without a core cannot keep the network busy.
  const double starved =
      OfAll([](const RankMeans& means) { return means.progress_starved(); });
  const bool is_starved = starved >= 0.3;
  if (is_starved) {
    evidence.push_back(absl::StrCat("background threads waited for a core in ",
                                    Percent(starved),
                                    " of the time in which they could run"));
  }
  Add({.cause = "slow-data-plane",
       .title = across && !is_starved
                    ? "The network between the hosts slows down the steps"
                    : "Reducing the gradients slows down the steps",
       .evidence = std::move(evidence),
       .remedy = across && is_starved
                     ? "leave a core to the background thread of each rank "
                       "(hvdliterun does this); then check whether the network "
                       "is still slow"
                 : across
                     ? "check the interface and its speed (hvdlite_doctor, "
                       "hvdlite_bench sweep); then send less: "
                       "Compression::FP16, larger mini-batches, or "
                       "backward_passes_per_step"
                     : "reduce less often: larger mini-batches or "
                       "backward_passes_per_step; check the memory binding "
                       "with hvdlite_doctor",
       .share = share});
}

}  // namespace hvdlite::timeline
