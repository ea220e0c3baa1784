// A trace in memory: of hvdlite, of Horovod, or another in Chrome's format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "timeline/record/trace_event.h"

namespace hvdlite::timeline {

// An event that took time: a complete event, or a begin and its end.
struct TraceSlice {
  int64_t pid = 0;  // the rank, in hvdlite's traces
  int64_t tid = 0;  // the track, in hvdlite's traces
  size_t name = 0;  // index in Trace::names
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  int32_t details = -1;  // index in Trace::details; -1: none

  int64_t end_ns() const { return start_ns + duration_ns; }
};

// The args of hvdlite's events; -1: missing.
struct SliceDetails {
  int64_t bucket = -1;
  int64_t tensors = -1;
  int64_t bytes = -1;
  int64_t last_rank = -1;
  int64_t lateness_us = -1;
  int64_t picked_up_us = -1;  // time that it waited for the coordinator
  int64_t step = -1;
  int64_t work = -1;    // of a step: see StepCost
  int64_t cpu_us = -1;  // the same
  int64_t text = -1;    // index in Trace::names: the tensor, or the algorithm
};

// Values of a counter from one sample to the next.
struct TraceCounter {
  int64_t pid = 0;
  size_t name = 0;  // index in Trace::names
  int64_t time_ns = 0;
  std::vector<std::pair<size_t, double>> values;  // by index in Trace::names
};

struct TraceProcess {
  std::string name;
  // The rest is known only for traces of hvdlite.
  bool is_rank = false;
  std::string host;
  int64_t world_size = 0;
  int64_t dropped_events = 0;
  std::vector<TraceArg> facts;  // more about the rank, such as cpus

  int64_t Fact(absl::string_view fact, int64_t fallback) const;
  std::string TextFact(absl::string_view fact) const;  // empty: missing
};

// The rank that a profile of PyTorch belongs to.
struct ProfiledRank {
  int64_t rank = 0;
  int64_t world_size = -1;  // -1: unknown
};

struct Trace {
  std::vector<std::string> files;  // the files that were read
  std::vector<std::string> names;  // distinct names of slices and in details
  // In file order; a pair of begin and end is at the place of its begin.
  std::vector<TraceSlice> slices;
  std::vector<SliceDetails> details;
  std::vector<TraceCounter> counters;         // in file order
  std::map<int64_t, TraceProcess> processes;  // by pid; all pids of slices
  std::map<std::pair<int64_t, int64_t>, std::string> tracks;  // by pid and tid
  std::optional<ProfiledRank> profiled;
  std::vector<std::string> warnings;  // for people, one line each

  const std::string& NameOf(const TraceSlice& slice) const {
    return names[slice.name];
  }
  // All fields are -1 if the slice has no details.
  const SliceDetails& DetailsOf(const TraceSlice& slice) const;
};

}  // namespace hvdlite::timeline
