#include "timeline/diagnose/buckets.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "timeline/record/trace_event.h"

namespace hvdlite::timeline {
namespace {

// Longer times come from a damaged file: no training takes 30 years.
constexpr int64_t kLongestNs = 1'000'000'000'000'000'000;

void AddToSum(int64_t* sum_ns, int64_t ns) {
  *sum_ns = std::min(*sum_ns + std::min(ns, kLongestNs), kLongestNs);
}

bool IsPhase(absl::string_view name) {
  return absl::StartsWith(name, "MEMCPY_");
}

// Assembles buckets from their events on all ranks.
class BucketCollector {
 public:
  void Add(const Trace& trace, const TraceSlice& slice) {
    const std::string& name = trace.NameOf(slice);
    const SliceDetails& details = trace.DetailsOf(slice);
    if (slice.tid >= kFirstTensorTrack) {
      if (absl::StartsWith(name, "NEGOTIATE_")) {
        // The operation follows on the same track and names the bucket.
        negotiations_[{slice.pid, slice.tid}] = &slice;
      } else if (details.bucket >= 0) {
        AddTensor(trace, slice, details);
      }
      return;
    }
    if (slice.tid != kBucketTrack || details.bucket < 0) return;
    Bucket& bucket = BucketOf(details.bucket);
    RankBucket& rank = RankOf(&bucket, slice.pid);
    if (absl::EndsWith(name, "_BUCKET")) {
      bucket.collective = std::string(absl::StripSuffix(name, "_BUCKET"));
      bucket.bytes = std::max<int64_t>(details.bytes, 0);
      bucket.tensors = std::max<int64_t>(details.tensors, 0);
      if (details.text >= 0) {
        bucket.algorithm = trace.names[static_cast<size_t>(details.text)];
      }
      rank.start_ns = slice.start_ns;
      rank.end_ns = slice.end_ns();
    } else if (name == "WAIT_FOR_RANKS") {
      AddToSum(&rank.gate_ns, slice.duration_ns);
    } else if (IsPhase(name)) {
      AddToSum(&rank.copy_ns, slice.duration_ns);
    } else {
      AddToSum(&rank.data_ns, slice.duration_ns);
    }
  }

  std::vector<Bucket> Finish(int64_t world_size) {
    std::vector<Bucket> buckets;
    for (auto& [number, bucket] : buckets_) {
      std::erase_if(bucket.ranks,
                    [](const RankBucket& rank) { return rank.end_ns == 0; });
      if (bucket.ranks.empty()) continue;
      FindLast(world_size, told_[number], &bucket);
      buckets.push_back(std::move(bucket));
    }
    std::sort(
        buckets.begin(), buckets.end(),
        [](const Bucket& a, const Bucket& b) { return a.number < b.number; });
    return buckets;
  }

 private:
  // What rank 0 reported about the tensors of a bucket.
  struct Told {
    int64_t last_rank = -1;
    int64_t lateness_ns = -1;
    int64_t ready_ns = 0;  // this rank's submission plus the others' lateness
  };

  Bucket& BucketOf(int64_t number) {
    Bucket& bucket = buckets_[number];
    bucket.number = number;
    return bucket;
  }

  static RankBucket& RankOf(Bucket* bucket, int64_t rank) {
    const auto place = std::lower_bound(
        bucket->ranks.begin(), bucket->ranks.end(), rank,
        [](const RankBucket& known, int64_t at) { return known.rank < at; });
    if (place != bucket->ranks.end() && place->rank == rank) return *place;
    return *bucket->ranks.insert(place, RankBucket{.rank = rank});
  }

  void AddTensor(const Trace& trace, const TraceSlice& slice,
                 const SliceDetails& details) {
    const auto negotiation = negotiations_.find({slice.pid, slice.tid});
    if (negotiation == negotiations_.end()) return;
    const TraceSlice& negotiated = *negotiation->second;
    const SliceDetails& said = trace.DetailsOf(negotiated);
    RankBucket& rank = RankOf(&BucketOf(details.bucket), slice.pid);
    const int64_t submitted_ns = negotiated.start_ns;
    if (rank.submitted_ns == 0 || submitted_ns < rank.submitted_ns) {
      rank.submitted_ns = submitted_ns;
    }
    rank.ready_ns = std::max(rank.ready_ns, submitted_ns);
    rank.picked_up_ns = std::max(rank.picked_up_ns, said.picked_up_us * 1000);
    Told& told = told_[details.bucket];
    if (said.lateness_us * 1000 > told.lateness_ns) {
      told.last_rank = said.last_rank;
      told.lateness_ns = said.lateness_us * 1000;
    }
    if (said.last_rank >= 0 && said.last_rank != slice.pid) {
      told.ready_ns =
          std::max(told.ready_ns, submitted_ns + said.lateness_us * 1000);
    }
    negotiations_.erase(negotiation);
  }

  static void FindLast(int64_t world_size, const Told& told, Bucket* bucket) {
    const RankBucket* last = nullptr;
    int64_t before_ns = 0;  // when the rank before the last was ready
    for (const RankBucket& rank : bucket->ranks) {
      if (rank.ready_ns == 0) continue;
      if (last == nullptr || rank.ready_ns > last->ready_ns) {
        if (last != nullptr) before_ns = last->ready_ns;
        last = &rank;
      } else {
        before_ns = std::max(before_ns, rank.ready_ns);
      }
    }
    if (last == nullptr) {
      bucket->ready_everywhere_ns = bucket->ranks.front().start_ns;
      return;
    }
    bucket->ready_everywhere_ns = last->ready_ns;
    if (world_size < 2) return;
    if (before_ns != 0) {
      bucket->last_rank = last->rank;
      bucket->lateness_ns = last->ready_ns - before_ns;
    } else if (told.last_rank >= 0) {
      bucket->last_rank = told.last_rank;
      bucket->lateness_ns = told.lateness_ns;
      bucket->ready_everywhere_ns =
          std::max(bucket->ready_everywhere_ns,
                   std::min(told.ready_ns, bucket->ranks.front().start_ns));
    }
  }

  absl::flat_hash_map<int64_t, Bucket> buckets_;
  absl::flat_hash_map<int64_t, Told> told_;
  // By rank and track.
  absl::flat_hash_map<std::pair<int64_t, int64_t>, const TraceSlice*>
      negotiations_;
};

}  // namespace

std::vector<Bucket> FindBuckets(const Trace& trace) {
  int64_t world_size = 0;
  for (const auto& [pid, process] : trace.processes) {
    world_size = std::max(world_size, process.world_size);
  }
  BucketCollector collector;
  for (const TraceSlice& slice : trace.slices) {
    if (trace.processes.at(slice.pid).is_rank) collector.Add(trace, slice);
  }
  std::vector<Bucket> buckets = collector.Finish(world_size);
  std::sort(buckets.begin(), buckets.end(),
            [](const Bucket& a, const Bucket& b) {
              return std::tie(a.ranks.front().start_ns, a.number) <
                     std::tie(b.ranks.front().start_ns, b.number);
            });
  return buckets;
}

}  // namespace hvdlite::timeline
