#include "tools/timeline_viewer/viewer.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "timeline/trace_reader.h"
#include "timeline/trace_summary.h"
#include "tools/timeline_viewer/summary_table.h"

namespace hvdlite::timeline_viewer {
namespace {

using timeline::Trace;
using timeline::TraceProcess;
using timeline::TraceSlice;

constexpr absl::string_view kUsage =
    R"(Usage: timeline_viewer [--by-rank] [--sort self|wall|name|count] TRACE

Says where the time of a trace went: for each event name its wall duration (the
sum of its events' durations), its self time (the same less the time of events
nested in them), its average wall duration and how often it occurred.

TRACE is a file that HVDLITE_TIMELINE named, one of its parts
(trace.json.rank00000), a Horovod timeline, or another trace in Chrome's format.
If trace.json does not exist (the run was killed, or is still going on), its
parts are read together.

  --by-rank        a table for each rank after the one for all
  --sort COLUMN    self (default), wall, count: largest first; name: A to Z
  --help           this text

Exit status: 0; 1 if TRACE cannot be read; 2 for a wrong command line.
)";

struct CommandLine {
  std::string path;
  bool by_rank = false;
  bool help = false;
  SortBy sort_by = SortBy::kSelf;
};

absl::StatusOr<SortBy> ParseSortBy(absl::string_view text) {
  if (text == "self") return SortBy::kSelf;
  if (text == "wall") return SortBy::kWall;
  if (text == "name") return SortBy::kName;
  if (text == "count") return SortBy::kCount;
  return absl::InvalidArgumentError(absl::StrCat(
      "--sort takes self, wall, name or count, not \"", text, "\""));
}

absl::StatusOr<CommandLine> ParseCommandLine(
    const std::vector<std::string>& arguments) {
  CommandLine line;
  bool flags_ended = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    absl::string_view argument = arguments[i];
    if (flags_ended || !absl::StartsWith(argument, "-")) {
      if (!line.path.empty()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "one trace at a time, not both ", line.path, " and ", argument));
      }
      line.path = std::string(argument);
    } else if (argument == "--") {
      flags_ended = true;
    } else if (argument == "--help" || argument == "-h") {
      line.help = true;
    } else if (argument == "--by-rank") {
      line.by_rank = true;
    } else if (absl::ConsumePrefix(&argument, "--sort=")) {
      HVDLITE_ASSIGN_OR_RETURN(line.sort_by, ParseSortBy(argument));
    } else if (argument == "--sort") {
      if (++i == arguments.size()) return ParseSortBy("").status();
      HVDLITE_ASSIGN_OR_RETURN(line.sort_by, ParseSortBy(arguments[i]));
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown flag ", argument));
    }
  }
  if (line.path.empty() && !line.help) {
    return absl::InvalidArgumentError("which trace? None is given");
  }
  return line;
}

std::string DescribeFiles(const std::string& path, const Trace& trace) {
  if (trace.files.size() == 1) return trace.files.front();
  return absl::StrCat(path, " (", trace.files.size(), " parts, not merged)");
}

std::string DescribeProcesses(const Trace& trace) {
  std::set<std::string> hosts;
  int64_t ranks = 0;
  int64_t size = 0;
  for (const auto& [pid, process] : trace.processes) {
    if (!process.is_rank) continue;
    ++ranks;
    size = std::max(size, process.world_size);
    hosts.insert(Printable(process.host));
  }
  if (ranks == 0) {
    return absl::StrCat("Processes: ", trace.processes.size(),
                        " (a trace of another program; in Horovod's each is a "
                        "tensor)");
  }
  return absl::StrCat("Ranks:     ", ranks, " of ", size, " on ",
                      absl::StrJoin(hosts, ", "));
}

double SpanMs(const std::vector<TraceSlice>& slices) {
  if (slices.empty()) return 0;
  double first_ns = static_cast<double>(slices.front().start_ns);
  double last_ns = first_ns;
  for (const TraceSlice& slice : slices) {
    const auto start_ns = static_cast<double>(slice.start_ns);
    first_ns = std::min(first_ns, start_ns);
    last_ns =
        std::max(last_ns, start_ns + static_cast<double>(slice.duration_ns));
  }
  return (last_ns - first_ns) / 1e6;
}

void PrintHeader(const std::string& path, const Trace& trace,
                 std::ostream& out) {
  int64_t dropped_events = 0;
  for (const auto& [pid, process] : trace.processes) {
    dropped_events += process.dropped_events;
  }
  out << "Trace:     " << DescribeFiles(path, trace) << "\n"
      << DescribeProcesses(trace) << "\n"
      << absl::StrFormat("Time span: %.3f ms\n", SpanMs(trace.slices))
      << "Events:    " << trace.slices.size()
      << ", dropped while recording: " << dropped_events << "\n";
  for (const std::string& warning : trace.warnings) {
    out << "Warning:   " << Printable(warning) << "\n";
  }
  out << "\n";
}

std::string TableTitle(int64_t pid, const TraceProcess& process) {
  if (process.is_rank) {
    return absl::StrCat("Rank ", pid, " (", Printable(process.host), ")");
  }
  const std::string name = Printable(process.name);
  return absl::StrCat("Process ", pid, name.empty() ? "" : ": ", name);
}

}  // namespace

int RunViewer(const std::vector<std::string>& arguments, std::ostream& out,
              std::ostream& err) {
  const absl::StatusOr<CommandLine> line = ParseCommandLine(arguments);
  if (!line.ok()) {
    err << "timeline_viewer: " << line.status().message()
        << "; see timeline_viewer --help\n";
    return 2;
  }
  if (line->help) {
    out << kUsage;
    return 0;
  }
  const absl::StatusOr<Trace> trace = timeline::ReadTrace(line->path);
  if (!trace.ok()) {
    err << "timeline_viewer: " << trace.status().message() << "\n";
    return 1;
  }
  PrintHeader(line->path, *trace, out);
  out << RenderTable(timeline::Summarize(*trace), line->sort_by);
  if (line->by_rank) {
    for (const auto& [pid, summary] : timeline::SummarizeByProcess(*trace)) {
      out << "\n"
          << TableTitle(pid, trace->processes.at(pid)) << "\n"
          << RenderTable(summary, line->sort_by);
    }
  }
  out.flush();
  if (!out) {
    err << "timeline_viewer: cannot write to standard output\n";
    return 1;
  }
  return 0;
}

}  // namespace hvdlite::timeline_viewer
