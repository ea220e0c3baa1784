#include "timeline/trace_reader.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "timeline/slice_edges.h"
#include "timeline/trace_event_parser.h"
#include "timeline/trace_file.h"
#include "timeline/trace_format.h"

namespace hvdlite::timeline {
namespace {

// The duration of a begin whose end was not found.
constexpr int64_t kUnfinished = -1;

// Clocks that differ by more (31 years) are a damaged file.
constexpr int64_t kLargestClockOffsetNs = 1'000'000'000'000'000'000;

// So that a thousand times it fits, and more: in microseconds 31 years.
int64_t InRange(int64_t number) {
  constexpr int64_t kMost = 1'000'000'000'000'000;
  return std::clamp(number, -kMost, kMost);
}

// Where the arg `key` is kept; null: it is not.
int64_t* FieldOf(absl::string_view key, SliceDetails* details) {
  if (key == "batch") return &details->batch;
  if (key == "tensors") return &details->tensors;
  if (key == "bytes") return &details->bytes;
  if (key == "last_rank") return &details->last_rank;
  if (key == "lateness_us") return &details->lateness_us;
  if (key == "picked_up_us") return &details->picked_up_us;
  if (key == "step") return &details->step;
  return nullptr;
}

// More is a damaged file.
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

// Puts a Trace together from the events of one or more files. Use: for each
// file StartFile(), Add() for its events, FinishFile(); then Take(). Not
// thread-safe.
class TraceBuilder {
 public:
  void StartFile(const std::string& path);

  void Add(const ParsedEvent& event);

  // Pairs begins with ends by a stack per (pid, tid), in order of time, and
  // shifts slices to rank 0's clock. What did not fit becomes warnings.
  void FinishFile();

  void AddWarning(std::string warning);

  // The trace; the builder is then empty.
  Trace Take();

 private:
  size_t NameIndex(absl::string_view name);
  // The process is then known.
  void AddProcess(int64_t pid);
  void AddMetadata(const ParsedEvent& event);
  void AddSlice(const ParsedEvent& event, int64_t duration_ns);
  void AddCounter(const ParsedEvent& event);
  // Index in the trace's details of what `event` says in its args, or -1.
  int32_t AddDetails(const ParsedEvent& event);
  void PairAllEdges();
  void ShiftToRank0();
  void Warn(int64_t count, const std::string& what);

  Trace trace_;
  absl::flat_hash_map<std::string, size_t> name_indices_;
  std::optional<int64_t> last_pid_;  // that AddProcess() was called with

  // Of the file being read.
  std::string file_;
  size_t first_slice_ = 0;
  size_t first_counter_ = 0;
  absl::flat_hash_map<std::pair<int64_t, int64_t>, std::vector<SliceEdge>>
      edges_;
  std::map<int64_t, int64_t> clock_offsets_ns_;  // by pid
  int64_t malformed_events_ = 0;
  int64_t unfinished_events_ = 0;  // begin without end
  int64_t unbegun_events_ = 0;     // end without begin
};

void TraceBuilder::StartFile(const std::string& path) {
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
    default:  // instants, flows: nothing that takes time
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
  Warn(malformed_events_, "without phase, time or a valid duration left out");
  Warn(unfinished_events_, "begun but not ended left out");
  Warn(unbegun_events_, "ended but not begun left out");
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
    trace_.lanes[{event.pid, event.tid}] = TextOf(args, "name");
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
  trace_.slices.push_back({event.pid, event.tid, NameIndex(event.name),
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
  for (auto& [lane, edges] : edges_) {
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

absl::Status NotATrace(const std::string& path, absl::string_view reason) {
  return absl::InvalidArgumentError(absl::StrCat(
      path, " is no trace: ", reason,
      " (expected Chrome's trace format: an array of events, or an object with "
      "the array \"traceEvents\")"));
}

absl::Status ReadFile(const std::string& path, TraceBuilder* builder) {
  HVDLITE_ASSIGN_OR_RETURN(const TraceText read, ReadTraceText(path));
  const std::string& text = read.text;
  const size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first == std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " is empty: its process wrote no event before it ended"));
  }
  if (text[first] != '[' && text[first] != '{') {
    return NotATrace(path, "it does not begin with [ or {");
  }

  builder->StartFile(path);
  bool is_ours = false;
  int64_t typed_events = 0;
  const ParseReport report =
      ParseTraceEvents(text, [&](const ParsedEvent& event) {
        is_ours = is_ours || event.name == kTraceMetadata;
        if (event.phase != 0) ++typed_events;
        builder->Add(event);
      });
  if (typed_events == 0 && (report.closed || report.damaged_places > 0)) {
    if (report.damaged_places > 0) {
      return NotATrace(
          path, absl::StrCat("not JSON at byte ", report.first_damage_byte,
                             ", ", report.first_damage));
    }
    if (text.find("traceEvents") == std::string::npos && text[first] == '{') {
      return NotATrace(path, "it has no \"traceEvents\"");
    }
    if (report.events > 0) return NotATrace(path, "its objects have no \"ph\"");
  }
  builder->FinishFile();
  if (!read.warning.empty()) builder->AddWarning(read.warning);
  if (report.damaged_places > 0) {
    builder->AddWarning(absl::StrCat(
        path, ": damaged at ", report.damaged_places,
        report.damaged_places == 1 ? " place" : " places", " (first: byte ",
        report.first_damage_byte, "); events there are left out"));
  }
  if (report.cut_off) {
    builder->AddWarning(absl::StrCat(path, ": cut off within an event after ",
                                     report.events, " events"));
  } else if (is_ours && !report.closed && read.warning.empty()) {
    // Horovod never closes its files, so for them it means nothing.
    builder->AddWarning(absl::StrCat(
        path, ": not closed (its process was killed or is still running)"));
  }
  return absl::OkStatus();
}

// Warns about ranks whose part is missing, or that speak of different worlds.
void CheckRanks(Trace* trace) {
  std::set<int64_t> sizes;
  for (const auto& [pid, process] : trace->processes) {
    if (process.is_rank) sizes.insert(process.world_size);
  }
  if (sizes.empty()) return;
  if (sizes.size() > 1) {
    trace->warnings.push_back(absl::StrCat(
        "parts of different runs: they speak of ", absl::StrJoin(sizes, ", "),
        " ranks; remove the old ones"));
  }
  int64_t missing = 0;
  std::vector<int64_t> first_missing;
  const auto known = static_cast<int64_t>(trace->processes.size());
  for (int64_t rank = 0; rank < *sizes.rbegin(); ++rank) {
    if (trace->processes.contains(rank)) continue;
    ++missing;
    if (first_missing.size() < 10) first_missing.push_back(rank);
    if (missing > known + 1000) break;  // a damaged size, not a world
  }
  if (missing == 0) return;
  trace->warnings.push_back(absl::StrCat(
      "nothing from ", missing == 1 ? "rank " : "ranks ",
      absl::StrJoin(first_missing, ", "),
      missing > static_cast<int64_t>(first_missing.size()) ? ", ..." : "",
      " of ", *sizes.rbegin()));
}

// A rank may have been killed before it wrote anything: one readable part is
// enough.
absl::Status ReadParts(const std::vector<std::string>& parts,
                       TraceBuilder* builder) {
  absl::Status first_error;
  size_t failures = 0;
  for (const std::string& part : parts) {
    const absl::Status status = ReadFile(part, builder);
    if (status.ok()) continue;
    ++failures;
    first_error.Update(status);
    builder->AddWarning(std::string(status.message()));
  }
  return failures == parts.size() ? first_error : absl::OkStatus();
}

}  // namespace

int64_t NumberOf(const std::vector<TraceArg>& args, absl::string_view name,
                 int64_t fallback) {
  for (const auto& [key, value] : args) {
    const auto* number = std::get_if<int64_t>(&value);
    if (key == name && number != nullptr) return *number;
  }
  return fallback;
}

std::string TextOf(const std::vector<TraceArg>& args, absl::string_view name) {
  for (const auto& [key, value] : args) {
    const auto* text = std::get_if<std::string>(&value);
    if (key == name && text != nullptr) return *text;
  }
  return "";
}

int64_t TraceProcess::Fact(absl::string_view fact, int64_t fallback) const {
  return NumberOf(facts, fact, fallback);
}

std::string TraceProcess::TextFact(absl::string_view fact) const {
  return TextOf(facts, fact);
}

const SliceDetails& Trace::DetailsOf(const TraceSlice& slice) const {
  static const SliceDetails kNone;
  return slice.details < 0 ? kNone
                           : details[static_cast<size_t>(slice.details)];
}

std::optional<size_t> Trace::FindName(absl::string_view name) const {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<size_t>(found - names.begin());
}

absl::StatusOr<Trace> ReadTrace(const std::string& path) {
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                           FindTraceFiles(path));
  TraceBuilder builder;
  if (files.front() == path) {
    HVDLITE_RETURN_IF_ERROR(ReadFile(path, &builder));
    const std::map<int, std::string> parts = FindTraceParts(path);
    if (!parts.empty()) {
      builder.AddWarning(absl::StrCat(
          path, ": parts of another run lie beside it (", parts.begin()->second,
          parts.size() > 1 ? ", ..." : "", ") and are left out"));
    }
  } else {
    HVDLITE_RETURN_IF_ERROR(ReadParts(files, &builder));
  }
  Trace trace = builder.Take();
  if (!IsTracePartPath(path)) CheckRanks(&trace);
  return trace;
}

Trace TraceOf(int64_t rank, const std::vector<TraceArg>& facts,
              const std::vector<TraceEvent>& events) {
  TraceBuilder builder;
  builder.StartFile("");
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
    parsed.tid = event.lane;
    parsed.start_ns = event.start_ns;
    parsed.duration_ns = std::max<int64_t>(event.duration_ns, 0);
    take_args(event.args);
    builder.Add(parsed);
  }
  builder.FinishFile();
  return builder.Take();
}

}  // namespace hvdlite::timeline
