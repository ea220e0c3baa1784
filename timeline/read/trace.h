// A trace in memory: hvdlite's, Horovod's, or another in Chrome's format.
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

// Something that took time: a complete event, or a begin and its end.
struct TraceSlice {
  int64_t pid = 0;  // the rank, in hvdlite's traces
  int64_t tid = 0;  // the lane, in hvdlite's traces
  size_t name = 0;  // index in Trace::names
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  int32_t details = -1;  // index in Trace::details; -1: it has none

  int64_t end_ns() const { return start_ns + duration_ns; }
};

// What hvdlite's events say in their args; -1: not said.
struct SliceDetails {
  int64_t batch = -1;
  int64_t tensors = -1;
  int64_t bytes = -1;
  int64_t last_rank = -1;
  int64_t lateness_us = -1;
  int64_t picked_up_us = -1;  // it waited so long for the coordinator
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
  // Of hvdlite's own traces; else is_rank is false.
  bool is_rank = false;
  std::string host;
  int64_t world_size = 0;
  int64_t dropped_events = 0;
  std::vector<TraceArg> facts;  // more of the rank, such as cpus

  int64_t Fact(absl::string_view fact, int64_t fallback) const;
  std::string TextFact(absl::string_view fact) const;  // empty: not said
};

// Of a profile of PyTorch's: which rank's it is.
struct ProfiledRank {
  int64_t rank = 0;
  int64_t world_size = -1;  // -1: not said
};

struct Trace {
  std::vector<std::string> files;  // that it was read from
  std::vector<std::string> names;  // distinct names of slices and in details
  // In file order; of a begin and an end, where the begin stands.
  std::vector<TraceSlice> slices;
  std::vector<SliceDetails> details;
  std::vector<TraceCounter> counters;         // in file order
  std::map<int64_t, TraceProcess> processes;  // by pid; all that slices have
  std::map<std::pair<int64_t, int64_t>, std::string> lanes;  // by pid and tid
  std::optional<ProfiledRank> profiled;
  std::vector<std::string> warnings;  // for people, one line each

  const std::string& NameOf(const TraceSlice& slice) const {
    return names[slice.name];
  }
  // All -1 if it has none.
  const SliceDetails& DetailsOf(const TraceSlice& slice) const;
};

}  // namespace hvdlite::timeline
