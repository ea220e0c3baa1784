#include "tests/timeline/trace_rules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "timeline/read/slice_edges.h"
#include "timeline/read/trace_event_parser.h"
#include "timeline/read/trace_file.h"
#include "timeline/record/trace_format.h"

namespace hvdlite::timeline {
namespace {

using nlohmann::json;

// In the order in which violations are told.
constexpr std::array<absl::string_view, 19> kRules = {
    // The file is JSON in UTF-8: an array of events, or an object with the
    // array traceEvents.
    "json",
    // It does not end within an event, and an object has its end.
    "cut-off",
    // ph is one of the phases of Chrome's trace format.
    "phase",
    // It is a text, and there but for phase E.
    "name",
    // They are whole numbers (speedscope refuses events without tid).
    "pid", "tid",
    // ts is a number, and there but for phase M; and is not negative (Perfetto
    // drops such events).
    "time", "negative-time",
    // dur of phase X is a number, and not negative.
    "duration",
    // Times of phases B and E do not go back on a lane.
    "order",
    // Each B has its E, each E its B, and if it has a name, the same.
    "unfinished", "unbegun", "end-name",
    // Slices of a lane contain one another, or do not touch.
    "nesting",
    // It is an object.
    "args",
    // It has args, and all of them are numbers.
    "counter",
    // What names or sorts has the name, or the number.
    "metadata",
    // Lanes of a rank have names (thread_name).
    "unnamed-lane",
    // Its id begins and ends, and does not end before it begins.
    "flow"};

constexpr absl::string_view kPhases = "BEXiICbneSTpFstfPNODMVvRc(),";

constexpr size_t kMostShown = 100;  // characters of an event

// Lines of positions that are asked for in ascending order.
class LineCounter {
 public:
  explicit LineCounter(absl::string_view text) : text_(text) {}

  int64_t LineOf(size_t position) {
    if (position > at_) {
      line_ +=
          std::count(text_.begin() + static_cast<ptrdiff_t>(at_),
                     text_.begin() + static_cast<ptrdiff_t>(position), '\n');
      at_ = position;
    }
    return line_;
  }

 private:
  const absl::string_view text_;
  size_t at_ = 0;
  int64_t line_ = 1;
};

bool IsWhole(const json& event, const char* key) {
  const auto value = event.find(key);
  return value != event.end() && value->is_number_integer();
}

bool IsText(const json& object, const char* key) {
  const auto value = object.find(key);
  return value != object.end() && value->is_string();
}

bool IsTrue(const json& object, const char* key) {
  const auto value = object.find(key);
  return value != object.end() && value->is_boolean() && value->get<bool>();
}

// The text of an id, which may be a text or a number; empty: there is none.
std::string IdOf(const json& event, const char* key) {
  const auto value = event.find(key);
  if (value == event.end()) return "";
  if (value->is_string()) return value->get<std::string>();
  return value->is_number_integer() ? value->dump() : "";
}

class Validator {
 public:
  explicit Validator(absl::string_view text) : text_(text), lines_(text) {}

  std::vector<Violation> Run() {
    const ParseReport report = ParseTraceEvents(
        text_, [this](const ParsedEvent& event) { Check(event); },
        [this](const TraceDamage& damage) {
          Add("json", lines_.LineOf(damage.at), damage.reason);
        });
    const int64_t last_line = lines_.LineOf(text_.size());
    if (report.cut_off) {
      Add("cut-off", last_line, "the file ends within an event");
    } else if (!report.closed && !report.head.empty()) {
      Add("cut-off", last_line, "the object's end is missing");
    } else if (report.last_event_end == 0 && report.damaged_places == 0) {
      Add("json", 1, "there is no array of events");
    }
    CheckLanes();
    CheckFlows();
    std::vector<Violation> violations;
    for (const absl::string_view rule : kRules) {
      const auto found = violations_.find(rule);
      if (found != violations_.end()) violations.push_back(found->second);
    }
    return violations;
  }

 private:
  using Lane = std::pair<int64_t, int64_t>;  // pid and tid

  struct Slice {
    int64_t start_ns;
    int64_t end_ns;
    int64_t line;
  };

  struct LaneEvents {
    std::vector<Slice> slices;
    std::vector<SliceEdge> edges;  // ids: indices in edges_
    bool is_named = false;
    int64_t first_line = 0;
  };

  // A begin or an end.
  struct Edge {
    std::string name;  // empty: none
    int64_t line;
  };

  struct Flow {
    std::optional<int64_t> first_out_ns;
    std::optional<int64_t> last_in_ns;
    int64_t line = 0;
  };

  void Add(absl::string_view kind, int64_t line, std::string what) {
    Violation& violation = violations_[std::string(kind)];
    if (violation.count++ > 0 && violation.first_line <= line) return;
    violation.kind = std::string(kind);
    violation.first_line = line;
    violation.first = std::move(what);
  }

  void Check(const ParsedEvent& parsed) {
    const int64_t line = lines_.LineOf(parsed.position);
    const json event = json::parse(parsed.text, /*cb=*/nullptr,
                                   /*allow_exceptions=*/false);
    if (event.is_discarded()) return;  // not of what was an event
    const auto add = [&](absl::string_view kind) {
      Add(kind, line, std::string(parsed.text.substr(0, kMostShown)));
    };
    const std::string phase =
        IsText(event, "ph") ? event["ph"].get<std::string>() : "";
    if (phase.size() != 1 || !absl::StrContains(kPhases, phase)) {
      add("phase");
      return;
    }
    if (event.contains("name") ? !IsText(event, "name") : phase != "E") {
      add("name");
    }
    const bool is_global = phase == "i" && event.value("s", json()) == "g";
    if (!is_global) {
      if (!IsWhole(event, "pid")) add("pid");
      if (!IsWhole(event, "tid")) add("tid");
    }
    const auto args = event.find("args");
    if (args != event.end() && !args->is_object()) add("args");
    if (phase == "M") {
      CheckMetadata(parsed, event, add);
      return;
    }
    if (!parsed.start_ns.has_value()) {
      add("time");
      return;
    }
    if (*parsed.start_ns < 0) add("negative-time");
    if (phase == "X") {
      if (!event.contains("dur") || !event["dur"].is_number() ||
          parsed.has_bad_duration) {
        add("duration");
      } else {
        LaneOf(parsed, line)
            .slices.push_back({*parsed.start_ns,
                               *parsed.start_ns + parsed.duration_ns, line});
      }
    } else if (phase == "B" || phase == "E") {
      CheckEdge(parsed, line, add);
    } else if (phase == "C") {
      const bool has_values =
          args != event.end() && args->is_object() && !args->empty();
      if (!has_values ||
          !std::all_of(args->begin(), args->end(),
                       [](const json& value) { return value.is_number(); })) {
        add("counter");
      }
    }
    NoteFlow(parsed, event, phase, line, add);
  }

  LaneEvents& LaneOf(const ParsedEvent& event, int64_t line) {
    LaneEvents& lane = lanes_[{event.pid, event.tid}];
    if (lane.first_line == 0) lane.first_line = line;
    return lane;
  }

  template <typename AddKind>
  void CheckEdge(const ParsedEvent& parsed, int64_t line, AddKind add) {
    LaneEvents& lane = LaneOf(parsed, line);
    if (!lane.edges.empty() && lane.edges.back().time_ns > *parsed.start_ns) {
      add("order");
    }
    lane.edges.push_back({.time_ns = *parsed.start_ns,
                          .is_begin = parsed.phase == 'B',
                          .id = edges_.size()});
    edges_.push_back({std::string(parsed.name), line});
  }

  template <typename AddKind>
  void CheckMetadata(const ParsedEvent& parsed, const json& event,
                     AddKind add) {
    const json args = event.value("args", json::object());
    if (!args.is_object()) return;
    const absl::string_view name = parsed.name;
    if (name == "process_name" || name == "thread_name") {
      if (!IsText(args, "name")) add("metadata");
      if (name == "thread_name")
        lanes_[{parsed.pid, parsed.tid}].is_named = true;
    } else if (name == "process_sort_index" || name == "thread_sort_index") {
      if (!args.contains("sort_index") || !args["sort_index"].is_number()) {
        add("metadata");
      }
    } else if (name == "process_labels") {
      if (!IsText(args, "labels")) add("metadata");
    } else if (name == kTraceMetadata) {
      ranks_.insert(parsed.pid);
    }
  }

  template <typename AddKind>
  void NoteFlow(const ParsedEvent& parsed, const json& event,
                const std::string& phase, int64_t line, AddKind add) {
    const bool is_flow = phase == "s" || phase == "t" || phase == "f";
    const bool goes_out = phase == "s" || IsTrue(event, "flow_out");
    const bool comes_in = phase == "f" || IsTrue(event, "flow_in");
    if (!is_flow && !goes_out && !comes_in) return;
    const std::string id = IdOf(event, is_flow ? "id" : "bind_id");
    if (id.empty()) {
      add("flow");
      return;
    }
    const std::string category =
        is_flow && IsText(event, "cat") ? event["cat"].get<std::string>() : "";
    Flow& flow = flows_[{
        is_flow ? category + "/" + std::string(parsed.name) : std::string(),
        id}];
    if (flow.line == 0) flow.line = line;
    if (goes_out) {
      flow.first_out_ns = std::min(flow.first_out_ns.value_or(*parsed.start_ns),
                                   *parsed.start_ns);
    }
    if (comes_in) {
      flow.last_in_ns = std::max(flow.last_in_ns.value_or(*parsed.start_ns),
                                 *parsed.start_ns + parsed.duration_ns);
    }
  }

  void CheckLanes() {
    for (auto& [key, lane] : lanes_) {
      const std::string where =
          absl::StrCat("pid ", key.first, ", tid ", key.second);
      if (lane.first_line > 0 && !lane.is_named && ranks_.contains(key.first)) {
        Add("unnamed-lane", lane.first_line, where);
      }
      const PairedEdges paired = PairEdges(std::move(lane.edges));
      for (const SliceEdge& edge : paired.unfinished) {
        Add("unfinished", edges_[edge.id].line,
            absl::StrCat("\"", edges_[edge.id].name, "\", ", where));
      }
      for (const SliceEdge& edge : paired.unbegun) {
        Add("unbegun", edges_[edge.id].line, where);
      }
      for (const auto& [begin, end] : paired.pairs) {
        const Edge& first = edges_[begin.id];
        const Edge& last = edges_[end.id];
        if (!last.name.empty() && last.name != first.name) {
          Add("end-name", last.line,
              absl::StrCat("\"", last.name, "\" ends \"", first.name, "\""));
        }
        lane.slices.push_back({begin.time_ns, end.time_ns, first.line});
      }
      CheckNesting(where, &lane.slices);
    }
  }

  void CheckNesting(const std::string& where, std::vector<Slice>* slices) {
    std::sort(slices->begin(), slices->end(),
              [](const Slice& a, const Slice& b) {
                return std::tie(a.start_ns, b.end_ns, a.line) <
                       std::tie(b.start_ns, a.end_ns, b.line);
              });
    std::vector<int64_t> open_ends_ns;
    for (const Slice& slice : *slices) {
      while (!open_ends_ns.empty() && open_ends_ns.back() <= slice.start_ns) {
        open_ends_ns.pop_back();
      }
      if (!open_ends_ns.empty() && open_ends_ns.back() < slice.end_ns) {
        Add("nesting", slice.line,
            absl::StrCat("the slice of ", slice.end_ns - slice.start_ns,
                         " ns ends ", slice.end_ns - open_ends_ns.back(),
                         " ns after the one that it begins in; ", where));
        continue;
      }
      open_ends_ns.push_back(slice.end_ns);
    }
  }

  void CheckFlows() {
    for (const auto& [id, flow] : flows_) {
      const std::string what = absl::StrCat("flow ", id.second);
      if (!flow.first_out_ns.has_value()) {
        Add("flow", flow.line, absl::StrCat(what, " does not begin"));
      } else if (!flow.last_in_ns.has_value()) {
        Add("flow", flow.line, absl::StrCat(what, " does not end"));
      } else if (*flow.last_in_ns < *flow.first_out_ns) {
        Add("flow", flow.line, absl::StrCat(what, " ends before it begins"));
      }
    }
  }

  const absl::string_view text_;
  LineCounter lines_;
  std::map<std::string, Violation, std::less<>> violations_;
  std::map<Lane, LaneEvents> lanes_;
  std::vector<Edge> edges_;
  std::set<int64_t> ranks_;
  std::map<std::pair<std::string, std::string>, Flow> flows_;
};

}  // namespace

absl::StatusOr<std::vector<Violation>> FindViolations(const std::string& path) {
  HVDLITE_ASSIGN_OR_RETURN(const TraceText read, ReadTraceText(path));
  std::vector<Violation> violations = Validator(read.text).Run();
  if (!read.warning.empty()) {
    violations.insert(
        violations.begin(),
        {.kind = "gzip", .count = 1, .first_line = 1, .first = read.warning});
  }
  return violations;
}

}  // namespace hvdlite::timeline
