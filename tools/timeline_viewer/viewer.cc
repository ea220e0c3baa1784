#include "tools/timeline_viewer/viewer.h"

#include <algorithm>
#include <array>
#include <cstddef>
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

namespace hvdlite::timeline_viewer {
namespace {

using timeline::NameSummary;
using timeline::Trace;
using timeline::TraceProcess;
using timeline::TraceSlice;
using timeline::TraceSummary;

// `text` with what would disturb a terminal (control characters) replaced by
// '?'.
std::string Printable(const std::string& text) {
  std::string printable = text;
  std::replace_if(
      printable.begin(), printable.end(),
      [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == '\x7f';
      },
      '?');
  return printable;
}

// Of a trace's summary as a table for people.
enum class SortBy { kSelf, kWall, kName, kCount };

constexpr size_t kColumns = 5;
using Row = std::array<std::string, kColumns>;

std::string Milliseconds(double time_ns) {
  return absl::StrFormat("%.3f", time_ns / 1e6);
}

Row MakeRow(const std::string& name, const NameSummary& summary) {
  return {Printable(name), Milliseconds(static_cast<double>(summary.wall_ns)),
          Milliseconds(static_cast<double>(summary.self_ns)),
          Milliseconds(summary.average_wall_ns()),
          absl::StrCat(summary.occurrences)};
}

// Larger values first.
int64_t SortValue(const NameSummary& summary, SortBy sort_by) {
  switch (sort_by) {
    case SortBy::kSelf:
      return summary.self_ns;
    case SortBy::kWall:
      return summary.wall_ns;
    case SortBy::kCount:
      return summary.occurrences;
    case SortBy::kName:
      break;
  }
  return 0;
}

// Characters on the screen: bytes that do not continue a UTF-8 character.
size_t Width(const std::string& text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(),
      [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

// One line per event name, with wall duration, self time and average wall
// duration in milliseconds and the number of occurrences; then the totals. The
// largest come first; kName sorts from A to Z.
std::string RenderTable(const TraceSummary& summary, SortBy sort_by) {
  std::vector<NameSummary> names = summary.names;  // sorted by name
  std::stable_sort(names.begin(), names.end(),
                   [sort_by](const NameSummary& a, const NameSummary& b) {
                     return SortValue(a, sort_by) > SortValue(b, sort_by);
                   });
  std::vector<Row> rows = {{"Name", "Wall Duration (ms)", "Self time (ms)",
                            "Average Wall Duration (ms)", "Occurrences"}};
  for (const NameSummary& name : names) {
    rows.push_back(MakeRow(name.name.empty() ? "(no name)" : name.name, name));
  }
  rows.push_back(MakeRow("Totals", summary.totals));

  std::array<size_t, kColumns> widths = {};
  for (const Row& row : rows) {
    for (size_t i = 0; i < kColumns; ++i) {
      widths[i] = std::max(widths[i], Width(row[i]));
    }
  }
  size_t table_width = 2 * (kColumns - 1);
  for (const size_t width : widths) table_width += width;
  const std::string rule = std::string(table_width, '-') + "\n";

  std::string table;
  for (size_t r = 0; r < rows.size(); ++r) {
    if (r + 1 == rows.size()) table += rule;
    for (size_t i = 0; i < kColumns; ++i) {
      const std::string padding(widths[i] - Width(rows[r][i]), ' ');
      if (i == 0) {
        absl::StrAppend(&table, rows[r][i], padding);
      } else {
        absl::StrAppend(&table, "  ", padding, rows[r][i]);
      }
    }
    table += "\n";
    if (r == 0) table += rule;
  }
  return table;
}

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
