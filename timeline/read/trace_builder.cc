#include "timeline/read/trace_builder.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "timeline/record/trace_event.h"
#include "timeline/record/trace_format.h"

namespace hvdlite::timeline {
namespace {

// The duration of a begin without an end.
constexpr int64_t kUnfinished = -1;

// Clocks cannot differ by more (31 years): the file is damaged.
constexpr int64_t kLargestClockOffsetNs = 1'000'000'000'000'000'000;

// 31 years in microseconds: a thousand times as much still fits.
int64_t InRange(int64_t number) {
  constexpr int64_t kMost = 1'000'000'000'000'000;
  return std::clamp(number, -kMost, kMost);
}

// The field that keeps the arg `key`; null if there is none. A bucket was
// called a batch in the first traces.
int64_t* FieldOf(absl::string_view key, SliceDetails* details) {
  if (key == "bucket" || key == "batch") return &details->bucket;
  if (key == "tensors") return &details->tensors;
  if (key == "bytes") return &details->bytes;
  if (key == "last_rank") return &details->last_rank;
  if (key == "lateness_us") return &details->lateness_us;
  if (key == "picked_up_us") return &details->picked_up_us;
  if (key == "step") return &details->step;
  if (key == "work") return &details->work;
  if (key == "cpu_us") return &details->cpu_us;
  return nullptr;
}

// A file with more is damaged.
constexpr int64_t kMostDroppedEvents = 1'000'000'000'000;

std::vector<TraceArg> ArgsOf(const ParsedEvent& event) {
  std::vector<TraceArg> args;
  for (const ParsedArg& arg : event.args) {
    TraceArg& copy = args.emplace_back(arg.key, int64_t{0});
    if (const auto* text = std::get_if<absl::string_view>(&arg.value)) {
      copy.second = std::string(*text);
    } else if (const auto* real = std::get_if<double>(&arg.value)) {
      copy.second = *real;
    } else {
      copy.second = std::get<int64_t>(arg.value);
    }
  }
  return args;
}

}  // namespace

void TraceBuilder::StartFile(const std::string& path, size_t bytes) {
  // Most events are longer. Reserved memory that is not used costs nothing.
  constexpr size_t kBytesOfEvent = 100;
  const size_t events = trace_.slices.size() + bytes / kBytesOfEvent;
  if (events > 2 * trace_.slices.capacity()) {
    trace_.slices.reserve(events);
    trace_.details.reserve(events);
  }
  trace_.files.push_back(path);
  file_ = path;
  first_slice_ = trace_.slices.size();
  first_counter_ = trace_.counters.size();
  edges_.clear();
  clock_offsets_ns_.clear();
  malformed_events_ = 0;
  unfinished_events_ = 0;
  unbegun_events_ = 0;
}

void TraceBuilder::Add(const ParsedEvent& event) {
  switch (event.phase) {
    case 'M':
      AddMetadata(event);
      break;
    case 'X':
      if (!event.start_ns.has_value() || event.has_bad_duration) {
        ++malformed_events_;
      } else {
        AddSlice(event, event.duration_ns);
      }
      break;
    case 'B':
    case 'E': {
      if (!event.start_ns.has_value()) {
        ++malformed_events_;
        break;
      }
      const bool is_begin = event.phase == 'B';
      edges_[{event.pid, event.tid}].push_back({.time_ns = *event.start_ns,
                                                .is_begin = is_begin,
                                                .id = trace_.slices.size()});
      if (is_begin) AddSlice(event, kUnfinished);
      break;
    }
    case 0:
      ++malformed_events_;
      break;
    case 'C':
      AddCounter(event);
      break;
    default:  // instants and flows take no time
      break;
  }
}

void TraceBuilder::FinishFile() {
  PairAllEdges();
  std::vector<TraceSlice>& slices = trace_.slices;
  if (unfinished_events_ > 0) {
    slices.erase(std::remove_if(
                     slices.begin() + static_cast<std::ptrdiff_t>(first_slice_),
                     slices.end(),
                     [](const TraceSlice& slice) {
                       return slice.duration_ns == kUnfinished;
                     }),
                 slices.end());
  }
  std::erase_if(clock_offsets_ns_,
                [](const auto& offset) { return offset.second == 0; });
  if (!clock_offsets_ns_.empty()) ShiftToRank0();
  Warn(malformed_events_, "left out: without phase, time or a valid duration");
  Warn(unfinished_events_, "left out: begin without an end");
  Warn(unbegun_events_, "left out: end without a begin");
}

void TraceBuilder::ShiftToRank0() {
  std::vector<TraceSlice>& slices = trace_.slices;
  for (size_t i = first_slice_; i < slices.size(); ++i) {
    const auto offset = clock_offsets_ns_.find(slices[i].pid);
    if (offset != clock_offsets_ns_.end()) slices[i].start_ns += offset->second;
  }
  for (size_t i = first_counter_; i < trace_.counters.size(); ++i) {
    TraceCounter& counter = trace_.counters[i];
    const auto offset = clock_offsets_ns_.find(counter.pid);
    if (offset != clock_offsets_ns_.end()) counter.time_ns += offset->second;
  }
}

void TraceBuilder::AddWarning(std::string warning) {
  trace_.warnings.push_back(std::move(warning));
}

Trace TraceBuilder::Take() {
  name_indices_.clear();
  last_pid_.reset();
  return std::exchange(trace_, Trace());
}

size_t TraceBuilder::NameIndex(absl::string_view name) {
  const auto [place, added] =
      name_indices_.try_emplace(name, trace_.names.size());
  if (added) trace_.names.emplace_back(name);
  return place->second;
}

void TraceBuilder::AddProcess(int64_t pid) {
  if (last_pid_ != pid) trace_.processes.try_emplace(pid);
  last_pid_ = pid;
}

void TraceBuilder::AddMetadata(const ParsedEvent& event) {
  const std::vector<TraceArg> args = ArgsOf(event);
  if (event.name == "process_name") {
    trace_.processes[event.pid].name = TextOf(args, "name");
  } else if (event.name == "thread_name") {
    trace_.tracks[{event.pid, event.tid}] = TextOf(args, "name");
  } else if (event.name == kTraceMetadata) {
    TraceProcess& process = trace_.processes[event.pid];
    process.is_rank = true;
    process.host = TextOf(args, "host");
    process.world_size = NumberOf(args, "size", 0);
    process.facts = args;
    const int64_t offset_ns = NumberOf(args, "clock_offset_ns", 0);
    if (offset_ns >= -kLargestClockOffsetNs &&
        offset_ns <= kLargestClockOffsetNs) {
      clock_offsets_ns_[event.pid] = offset_ns;
    } else {
      ++malformed_events_;
    }
  } else if (event.name == kDroppedMetadata) {
    const int64_t dropped = NumberOf(args, "dropped_events", 0);
    if (dropped >= 0 && dropped <= kMostDroppedEvents) {
      trace_.processes[event.pid].dropped_events += dropped;
    } else {
      ++malformed_events_;
    }
  }
}

void TraceBuilder::AddSlice(const ParsedEvent& event, int64_t duration_ns) {
  AddProcess(event.pid);
  absl::string_view name = event.name;
  std::string renamed;
  if (event.tid == kBucketTrack && absl::ConsumeSuffix(&name, "_BATCH")) {
    renamed = absl::StrCat(name, "_BUCKET");
    name = renamed;
  }
  trace_.slices.push_back({event.pid, event.tid, NameIndex(name),
                           *event.start_ns, duration_ns, AddDetails(event)});
}

int32_t TraceBuilder::AddDetails(const ParsedEvent& event) {
  if (event.args.empty()) return -1;
  SliceDetails details;
  bool any = false;
  for (const auto& [key, value] : event.args) {
    if (const auto* number = std::get_if<int64_t>(&value)) {
      int64_t* const field = FieldOf(key, &details);
      if (field == nullptr) continue;
      *field = InRange(*number);
      any = true;
    } else if (const auto* text = std::get_if<absl::string_view>(&value)) {
      if (key != "tensor" && key != "algorithm") continue;
      details.text = static_cast<int64_t>(NameIndex(*text));
      any = true;
    }
  }
  if (!any) return -1;
  trace_.details.push_back(details);
  return static_cast<int32_t>(trace_.details.size() - 1);
}

void TraceBuilder::AddCounter(const ParsedEvent& event) {
  if (!event.start_ns.has_value()) {
    ++malformed_events_;
    return;
  }
  TraceCounter counter = {.pid = event.pid,
                          .name = NameIndex(event.name),
                          .time_ns = *event.start_ns,
                          .values = {}};
  for (const auto& [key, value] : event.args) {
    if (const auto* number = std::get_if<int64_t>(&value)) {
      counter.values.emplace_back(NameIndex(key), *number);
    } else if (const auto* real = std::get_if<double>(&value)) {
      counter.values.emplace_back(NameIndex(key), *real);
    }
  }
  AddProcess(event.pid);
  trace_.counters.push_back(std::move(counter));
}

void TraceBuilder::PairAllEdges() {
  for (auto& [track, edges] : edges_) {
    const PairedEdges paired = PairEdges(std::move(edges));
    for (const auto& [begin, end] : paired.pairs) {
      trace_.slices[begin.id].duration_ns = end.time_ns - begin.time_ns;
    }
    unbegun_events_ += static_cast<int64_t>(paired.unbegun.size());
    unfinished_events_ += static_cast<int64_t>(paired.unfinished.size());
  }
}

void TraceBuilder::Warn(int64_t count, const std::string& what) {
  if (count == 0) return;
  AddWarning(absl::StrCat(file_, ": ", count,
                          count == 1 ? " event " : " events ", what));
}

Trace TraceOf(int64_t rank, const std::vector<TraceArg>& facts,
              const std::vector<TraceEvent>& events) {
  TraceBuilder builder;
  builder.StartFile("", 0);
  ParsedEvent parsed;
  const auto take_args = [&parsed](const std::vector<TraceArg>& args) {
    for (const TraceArg& arg : args) {
      ParsedArg& taken = parsed.args.emplace_back();
      taken.key = arg.first;
      std::visit([&taken](const auto& value) { taken.value = value; },
                 arg.second);
    }
  };
  parsed.phase = 'M';
  parsed.name = kTraceMetadata;
  parsed.pid = rank;
  take_args(facts);
  builder.Add(parsed);
  for (const TraceEvent& event : events) {
    parsed.Clear();
    parsed.phase = event.kind == TraceEvent::Kind::kCounter ? 'C' : 'X';
    parsed.name = event.name;
    parsed.pid = rank;
    parsed.tid = event.track;
    parsed.start_ns = event.start_ns;
    parsed.duration_ns = std::max<int64_t>(event.duration_ns, 0);
    take_args(event.args);
    builder.Add(parsed);
  }
  builder.FinishFile();
  return builder.Take();
}

}  // namespace hvdlite::timeline
