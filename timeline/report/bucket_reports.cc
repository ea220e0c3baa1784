// The reports about buckets and tensors.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "timeline/record/trace_event.h"
#include "timeline/report/reports.h"

namespace hvdlite::timeline {
namespace {

// Rounds up to a power of four, for statistics of buckets.
int64_t SizeClass(int64_t bytes) {
  int64_t bound = 256;
  while (bound < bytes && bound < (int64_t{1} << 40)) bound *= 4;
  return bound;
}

std::string SizeName(int64_t bytes) {
  if (bytes >= 1 << 20) return absl::StrCat(bytes >> 20, " MiB");
  if (bytes >= 1 << 10) return absl::StrCat(bytes >> 10, " KiB");
  return absl::StrCat(bytes, " B");
}

// Bytes on the busiest link per byte of the buffer (nccl-tests,
// PERFORMANCE.md).
double BusFactor(const std::string& collective, int64_t ranks) {
  if (ranks < 2) return 0;
  const double share =
      static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  if (collective == "ALLREDUCE") return 2 * share;
  if (collective == "BROADCAST") return 1;
  return share;
}

}  // namespace

void ReportFusion(const Examined& examined, Report* report) {
  struct Sums {
    int64_t buckets = 0;
    double tensors = 0;
    double bytes = 0;
    double ns = 0;
  };
  std::map<std::pair<std::string, int64_t>, Sums> classes;
  for (const Bucket& bucket : examined.analysis.buckets) {
    Sums& sums = classes[{bucket.collective, SizeClass(bucket.bytes)}];
    ++sums.buckets;
    sums.tensors += static_cast<double>(bucket.tensors);
    sums.bytes += static_cast<double>(bucket.bytes);
    sums.ns += static_cast<double>(bucket.ranks.front().end_ns -
                                   bucket.ranks.front().start_ns);
  }
  if (classes.empty()) {
    return report->AddLine("This trace has no buckets of hvdlite.");
  }
  const auto steps = static_cast<int64_t>(
      PartsByRank(examined.analysis.steps).empty()
          ? 1
          : examined.analysis.steps.size() /
                PartsByRank(examined.analysis.steps).size());
  Table table = {
      .name = "fusion",
      .columns = {"collective", "bucket up to", "buckets", "tensors/bucket",
                  "bytes/bucket", "ms/bucket", "ms/MB"},
      .rows = {},
      .keys = 2};
  for (const auto& [size_class, sums] : classes) {
    const auto count = static_cast<double>(sums.buckets);
    table.rows.push_back(
        {size_class.first, SizeName(size_class.second), sums.buckets,
         Cell::Number(sums.tensors / count, 1),
         Cell::Number(sums.bytes / count, 0),
         Cell::Milliseconds(sums.ns / count),
         Cell::Number(sums.bytes == 0 ? 0 : sums.ns / sums.bytes, 3)});
  }
  report->AddLine(
      absl::StrFormat("%.1f buckets per step",
                      static_cast<double>(examined.analysis.buckets.size()) /
                          static_cast<double>(std::max<int64_t>(steps, 1))));
  for (const auto& [pid, process] : examined.trace.processes) {
    const int64_t threshold = process.Fact("fusion_threshold_bytes", -1);
    if (threshold < 0) continue;
    report->AddLine(absl::StrCat("HVDLITE_FUSION_THRESHOLD_BYTES ", threshold,
                                 ", HVDLITE_MIN_BATCH_BYTES ",
                                 process.Fact("min_batch_bytes", -1)));
    break;
  }
  report->AddTable(std::move(table));
}

void ReportBandwidth(const Examined& examined, Report* report) {
  struct Sums {
    int64_t buckets = 0;
    double bytes = 0;
    double ns = 0;
    double best = 0;  // bytes per ns
  };
  using Key = std::tuple<std::string, std::string, int64_t>;
  std::map<Key, Sums> classes;
  int64_t size = 0;
  for (const auto& [pid, process] : examined.trace.processes) {
    size = std::max(size, process.world_size);
  }
  for (const Bucket& bucket : examined.analysis.buckets) {
    // The time from the last rank's start to the last rank's end.
    int64_t start_ns = bucket.ranks.front().start_ns;
    int64_t end_ns = bucket.ranks.front().end_ns;
    for (const RankBucket& rank : bucket.ranks) {
      start_ns = std::max(start_ns, rank.start_ns + rank.gate_ns);
      end_ns = std::max(end_ns, rank.end_ns);
    }
    const auto ns = static_cast<double>(end_ns - start_ns);
    if (ns <= 0 || bucket.bytes == 0) continue;
    Sums& sums =
        classes[{bucket.collective, bucket.algorithm, SizeClass(bucket.bytes)}];
    ++sums.buckets;
    sums.bytes += static_cast<double>(bucket.bytes);
    sums.ns += ns;
    sums.best = std::max(sums.best, static_cast<double>(bucket.bytes) / ns);
  }
  if (classes.empty()) {
    return report->AddLine("This trace has no buckets of hvdlite.");
  }
  Table table = {
      .name = "bandwidth",
      .columns = {"collective", "algorithm", "bucket up to", "buckets",
                  "ms/bucket", "algbw MB/s", "busbw MB/s", "best algbw MB/s"},
      .rows = {},
      .keys = 3};
  for (const auto& [key, sums] : classes) {
    const auto& [collective, algorithm, bound] = key;
    const double rate = sums.bytes / sums.ns * 1e3;
    table.rows.push_back(
        {collective, algorithm, SizeName(bound), sums.buckets,
         Cell::Milliseconds(sums.ns / static_cast<double>(sums.buckets)),
         Cell::Number(rate, 1),
         Cell::Number(rate * BusFactor(collective, size), 1),
         Cell::Number(sums.best * 1e3, 1)});
  }
  report->AddLine(
      "Buckets, from the last rank's start to the last rank's end, including "
      "copies:");
  report->AddTable(std::move(table));
}

absl::Status ReportTensor(const Examined& examined, const std::string& name,
                          Report* report) {
  struct Sums {
    int64_t count = 0;
    int64_t bytes = 0;
    double negotiated_ns = 0;
    double longest_ns = 0;
    double reduced_ns = 0;
    std::map<int64_t, int64_t> last_ranks;
  };
  const Trace& trace = examined.trace;
  std::map<int64_t, Sums> ranks;
  std::set<std::string> known;
  for (const TraceSlice& slice : trace.slices) {
    const auto& details = trace.DetailsOf(slice);
    if (slice.tid < kFirstTensorTrack || details.text < 0) continue;
    const std::string& tensor = trace.names[static_cast<size_t>(details.text)];
    if (tensor != name) {
      if (known.size() < 8) known.insert(tensor);
      continue;
    }
    Sums& sums = ranks[slice.pid];
    const auto ns = static_cast<double>(slice.duration_ns);
    if (absl::StartsWith(trace.NameOf(slice), "NEGOTIATE_")) {
      ++sums.count;
      sums.bytes = std::max(sums.bytes, details.bytes);
      sums.negotiated_ns += ns;
      sums.longest_ns = std::max(sums.longest_ns, ns);
      if (details.last_rank >= 0) ++sums.last_ranks[details.last_rank];
    } else {
      sums.reduced_ns += ns;
    }
  }
  if (ranks.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "this trace has no tensor \"", name, "\"",
        known.empty() ? "" : "; it has ", absl::StrJoin(known, ", ")));
  }
  Table table = {.name = "tensor",
                 .columns = {"rank", "times", "bytes", "negotiated ms",
                             "longest ms", "reduced ms", "most often last"},
                 .rows = {}};
  for (const auto& [rank, sums] : ranks) {
    const double count = static_cast<double>(std::max<int64_t>(sums.count, 1));
    const auto last = std::max_element(
        sums.last_ranks.begin(), sums.last_ranks.end(),
        [](const auto& a, const auto& b) { return a.second < b.second; });
    table.rows.push_back({rank, sums.count, sums.bytes,
                          Cell::Milliseconds(sums.negotiated_ns / count),
                          Cell::Milliseconds(sums.longest_ns),
                          Cell::Milliseconds(sums.reduced_ns / count),
                          last == sums.last_ranks.end()
                              ? Cell("-")
                              : Cell(absl::StrCat("rank ", last->first))});
  }
  report->AddLine(absl::StrCat("Tensor ", name, ", means:"));
  report->AddTable(std::move(table));
  return absl::OkStatus();
}

}  // namespace hvdlite::timeline
