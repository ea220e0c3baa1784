// Made-up traces of trainings, as hvdlite records them, for tests of code that
// reads traces.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "timeline/read/trace_reader.h"
#include "timeline/record/trace_event.h"

namespace hvdlite::timeline {

// In each step each rank loads a mini-batch, computes, submits `buckets`
// tensors at the end, and waits until they have been reduced one after the
// other.
struct FakeTraining {
  int64_t ranks = 2;
  int64_t steps = 20;
  std::function<int64_t(int64_t rank, int64_t step)> input_us =
      [](int64_t, int64_t) { return 0; };
  std::function<int64_t(int64_t rank, int64_t step)> computing_us =
      [](int64_t, int64_t) { return 10'000; };
  // The work of computing; null: not recorded, as by older versions.
  std::function<int64_t(int64_t rank, int64_t step)> work = nullptr;
  std::function<int64_t(int64_t rank, int64_t step)> cpu_us = nullptr;
  int64_t progress_us = 20;  // from when all are ready to the bucket's start
  int64_t buckets = 1;       // per step
  int64_t bucket_us = 200;   // data plane; copies take a fifth more
  int64_t bucket_bytes = 4 << 20;
  std::string algorithm = "MPI by chunks";
  // Counters per second for each rank.
  std::function<std::vector<std::pair<std::string, std::vector<TraceArg>>>(
      int64_t rank)>
      counters = nullptr;
  std::function<std::string(int64_t rank)> host = [](int64_t) {
    return "node0";
  };
  std::function<std::string(int64_t rank)> cpu_list = [](int64_t rank) {
    return std::to_string(rank);
  };
  std::vector<TraceArg> facts = {};
};

class TraceMaker {
 public:
  void AddRank(int64_t rank, int64_t size, const std::string& host,
               std::vector<TraceArg> facts = {}) {
    trace.processes[rank] = {.name = "",
                             .is_rank = true,
                             .host = host,
                             .world_size = size,
                             .dropped_events = 0,
                             .facts = std::move(facts)};
  }

  void AddSlice(int64_t pid, int64_t tid, const std::string& name,
                int64_t start_us, int64_t end_us, SliceDetails details = {}) {
    trace.processes.try_emplace(pid);
    trace.details.push_back(details);
    trace.slices.push_back({pid, tid, NameIndex(name), start_us * 1000,
                            (end_us - start_us) * 1000,
                            static_cast<int32_t>(trace.details.size()) - 1});
  }

  void AddCounter(int64_t pid, const std::string& name, int64_t time_us,
                  const std::vector<TraceArg>& values) {
    TraceCounter counter = {.pid = pid,
                            .name = NameIndex(name),
                            .time_ns = time_us * 1000,
                            .values = {}};
    for (const auto& [key, value] : values) {
      counter.values.emplace_back(
          NameIndex(key), static_cast<double>(std::get<int64_t>(value)));
    }
    trace.counters.push_back(std::move(counter));
  }

  size_t NameIndex(const std::string& name) {
    const auto known = std::find(trace.names.begin(), trace.names.end(), name);
    if (known == trace.names.end()) {
      trace.names.push_back(name);
      return trace.names.size() - 1;
    }
    return static_cast<size_t>(known - trace.names.begin());
  }

  Trace trace;
};

inline Trace MakeTrace(const FakeTraining& training) {
  TraceMaker maker;
  for (int64_t rank = 0; rank < training.ranks; ++rank) {
    std::vector<TraceArg> facts = training.facts;
    facts.emplace_back("cpu_list", training.cpu_list(rank));
    facts.emplace_back("cpus", int64_t{1});
    maker.AddRank(rank, training.ranks, training.host(rank), facts);
  }
  const auto ranks = static_cast<size_t>(training.ranks);
  std::vector<int64_t> now_us(ranks, 0);
  int64_t number = 0;
  for (int64_t step = 1; step <= training.steps; ++step) {
    const std::vector<int64_t> start_us = now_us;
    std::vector<int64_t> ready_us(ranks);
    int64_t all_us = 0;
    for (size_t i = 0; i < ranks; ++i) {
      const auto rank = static_cast<int64_t>(i);
      const int64_t loaded_us = start_us[i] + training.input_us(rank, step);
      maker.AddSlice(rank, kUserTrack, "LOAD_BATCH", start_us[i], loaded_us);
      ready_us[i] = loaded_us + training.computing_us(rank, step);
      all_us = std::max(all_us, ready_us[i]);
    }
    int64_t at_us = all_us;
    for (int64_t bucket = 0; bucket < training.buckets; ++bucket) {
      ++number;
      at_us += training.progress_us;
      const int64_t copies_us = training.bucket_us / 5;
      const int64_t end_us = at_us + training.bucket_us + copies_us;
      for (size_t i = 0; i < ranks; ++i) {
        const auto rank = static_cast<int64_t>(i);
        const int64_t track = kFirstTensorTrack + bucket;
        maker.AddSlice(rank, track, "NEGOTIATE_ALLREDUCE", ready_us[i], at_us);
        maker.AddSlice(rank, track, "ALLREDUCE", at_us, end_us,
                       {.bucket = number, .bytes = training.bucket_bytes});
        maker.AddSlice(rank, kBucketTrack, "ALLREDUCE_BUCKET", at_us, end_us,
                       {.bucket = number,
                        .tensors = 1,
                        .bytes = training.bucket_bytes,
                        .text = static_cast<int64_t>(
                            maker.NameIndex(training.algorithm))});
        maker.AddSlice(rank, kBucketTrack, "MEMCPY_IN_FUSION_BUFFER", at_us,
                       at_us + copies_us / 2, {.bucket = number});
        maker.AddSlice(rank, kBucketTrack, "MPI_ALLREDUCE",
                       at_us + copies_us / 2, end_us - copies_us / 2,
                       {.bucket = number});
        maker.AddSlice(rank, kBucketTrack, "MEMCPY_OUT_FUSION_BUFFER",
                       end_us - copies_us / 2, end_us, {.bucket = number});
      }
      at_us = end_us;
    }
    for (size_t i = 0; i < ranks; ++i) {
      const auto rank = static_cast<int64_t>(i);
      maker.AddSlice(rank, kUserTrack, kWaitForGradients, ready_us[i], at_us);
      maker.AddSlice(
          rank, kStepTrack, "TRAINING_STEP", start_us[i], at_us,
          {.step = step,
           .work = training.work ? training.work(rank, step) : -1,
           .cpu_us = training.cpu_us ? training.cpu_us(rank, step) : -1});
      now_us[i] = at_us;
    }
    if (!training.counters || step % 2 == 0) continue;
    for (size_t i = 0; i < ranks; ++i) {
      const auto rank = static_cast<int64_t>(i);
      // There is a sample every other step; the first one belongs to the start.
      const int64_t since_us = step == 1 ? 0 : now_us[i] - start_us[i];
      for (auto [name, values] : training.counters(rank)) {
        for (auto& [key, value] : values) {
          if (key != "threads") {
            value = std::get<int64_t>(value) * 2 * since_us / 1'000'000;
          }
        }
        maker.AddCounter(rank, name, at_us, values);
        // This is not a sample, and not a time to count from.
        maker.AddCounter(rank, "IN_FLIGHT", at_us + 1, {{"bytes", int64_t{8}}});
      }
    }
  }
  return maker.trace;
}

}  // namespace hvdlite::timeline
