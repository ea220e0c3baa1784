#include "tools/timeline_viewer/viewer.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "support/command_line.h"
#include "support/input_error.h"
#include "support/output_file.h"
#include "timeline/diagnose/trace_summary.h"
#include "timeline/read/trace_file.h"
#include "timeline/read/trace_reader.h"
#include "timeline/report/report.h"
#include "timeline/report/reports.h"
#include "tools/timeline_viewer/html_page.h"
#include "tools/timeline_viewer/merge.h"
#include "tools/timeline_viewer/page_facts.h"
#include "tools/timeline_viewer/repair.h"
#include "tools/timeline_viewer/slice.h"

namespace hvdlite::timeline_viewer {
namespace {

using timeline::Cell;
using timeline::Examined;
using timeline::NameSummary;
using timeline::Report;
using timeline::Table;
using timeline::TraceProcess;
using timeline::TraceSummary;

constexpr char kDescription[] =
    R"(Shows where the time of a trace went, and why.

timeline_viewer TRACE shows the parts of a training step, the most expensive
finding, and a table of event names:
  Covered       time in which at least one event of the name was active
  Wall          sum of the durations of its events
  Self          the same without the events nested in them
  Average wall  wall duration divided by the number of events
  Occurrences   number of events
Events of many tensors and ranks overlap, so only the covered time can be
compared with the time span. The event WAIT_FOR_RANKS is a bucket's wait for the
last background thread. In the part "waiting for ranks", the application waits
because some rank has not submitted its gradient.

TRACE is the file of HVDLITE_TIMELINE, one of its per-rank trace files
(trace.json.rank00000), a Horovod timeline, or another trace in Chrome's format;
gzipped or not. If trace.json does not exist (the run was killed or is still
running), its per-rank trace files are read together. All times are milliseconds
since the first event of the trace.
)";

constexpr char kFooter[] =
    "Exit status: 0: success; 1: a trace cannot be read, or nothing in it "
    "matches the selection; 2: the command line is wrong, or the output exists "
    "or is also an input; 3: --check has a finding.";

// The request of the command line.
struct Request {
  std::vector<std::string> paths;
  std::string sort = "covered";
  std::string tensor;
  bool by_rank = false;
  bool json = false;
  bool csv = false;
  bool check = false;
  std::string output;  // path; empty for html: a file beside the trace
  bool overwrite = false;
  bool force = false;
  SliceOptions slice;
};

// Larger values first.
int64_t SortValue(const NameSummary& summary, const std::string& sort) {
  if (sort == "covered") return summary.covered_ns;
  if (sort == "self") return summary.self_ns;
  if (sort == "wall") return summary.wall_ns;
  if (sort == "count") return summary.occurrences;
  return 0;
}

std::vector<Cell> MakeRow(const std::string& name, const NameSummary& summary) {
  return {name,
          Cell::Milliseconds(static_cast<double>(summary.covered_ns)),
          Cell::Milliseconds(static_cast<double>(summary.wall_ns)),
          Cell::Milliseconds(static_cast<double>(summary.self_ns)),
          Cell::Milliseconds(summary.average_wall_ns()),
          summary.occurrences};
}

// One row per event name, then the totals. The largest values come first;
// "name" sorts from A to Z.
Table TableOf(const std::string& table_name, const TraceSummary& summary,
              const std::string& sort) {
  std::vector<NameSummary> names = summary.names;  // sorted by name
  std::stable_sort(names.begin(), names.end(),
                   [&](const NameSummary& a, const NameSummary& b) {
                     return SortValue(a, sort) > SortValue(b, sort);
                   });
  Table table = {.name = table_name,
                 .columns = {"Name", "Covered (ms)", "Wall Duration (ms)",
                             "Self time (ms)", "Average Wall Duration (ms)",
                             "Occurrences"},
                 .rows = {},
                 .has_totals = true};
  for (const NameSummary& name : names) {
    table.rows.push_back(
        MakeRow(name.name.empty() ? "(no name)" : name.name, name));
  }
  table.rows.push_back(MakeRow("Totals", summary.totals));
  return table;
}

std::string TableTitle(int64_t pid, const TraceProcess& process) {
  if (process.is_rank) {
    return absl::StrCat("Rank ", pid, " (", process.host, ")");
  }
  return absl::StrCat("Process ", pid, process.name.empty() ? "" : ": ",
                      process.name);
}

void ReportOverview(const Request& request, const Examined& examined,
                    Report* report) {
  DescribeTrace(examined, report);
  ReportParts(examined, report);
  ReportFirstFinding(examined, report);
  report->AddTable(
      TableOf("events", timeline::Summarize(examined.trace), request.sort));
  if (!request.by_rank) return;
  for (const auto& [pid, summary] :
       timeline::SummarizeByProcess(examined.trace)) {
    report->AddLine("");
    report->AddLine(TableTitle(pid, examined.trace.processes.at(pid)));
    report->AddTable(
        TableOf(absl::StrCat("events of ", pid), summary, request.sort));
  }
}

// A command that answers a question about one trace.
struct Question {
  const char* name;
  const char* description;
  void (*answer)(const Examined&, Report*);
};

constexpr std::array kQuestions = {
    Question{"why", "What costs most time, with evidence and remedy",
             timeline::ReportWhy},
    Question{"steps", "Each step of each rank, in parts that add up",
             timeline::ReportSteps},
    Question{"stragglers", "Which rank the others wait for, step by step",
             timeline::ReportStragglers},
    Question{"overlap", "How much communication hides behind computing",
             timeline::ReportOverlap},
    Question{"fusion", "How gradients were packed into buckets",
             timeline::ReportFusion},
    Question{"bandwidth", "How fast buckets of each size were reduced",
             timeline::ReportBandwidth},
    Question{"critical-path", "The last rank of each step, and how it spent it",
             timeline::ReportCriticalPath}};

// Reads a trace and shifts its times: they count from its first event.
absl::StatusOr<std::unique_ptr<Examined>> Read(const std::string& path) {
  HVDLITE_ASSIGN_OR_RETURN(timeline::Trace trace, timeline::ReadTrace(path));
  const int64_t origin_ns = SpanOf(trace).origin_ns;
  for (timeline::TraceSlice& slice : trace.slices) slice.start_ns -= origin_ns;
  for (timeline::TraceCounter& counter : trace.counters) {
    counter.time_ns -= origin_ns;
  }
  return std::make_unique<Examined>(path, std::move(trace));
}

constexpr int kMany = std::numeric_limits<int>::max();

// The parser of the command line and its result.
class CommandLine {
 public:
  CommandLine() : app_(kDescription, "timeline_viewer") {
    app_.footer(kFooter);
    support::AddVersion(app_);
    app_.require_subcommand(0, 1);
    app_.fallthrough();
    // Not required: each subcommand has its own.
    app_.add_option("TRACE", request_.paths)->expected(1)->type_name("");
    app_.add_option("--sort", request_.sort,
                    "Order of the table of events: the largest covered, self, "
                    "wall or count first, or name from A to Z")
        ->check(CLI::IsMember({"covered", "self", "wall", "name", "count"}))
        ->type_name("COLUMN")
        ->capture_default_str();
    app_.add_flag("--by-rank", request_.by_rank,
                  "Also print a table of events for each rank");
    auto* const json = app_.add_flag("--json", request_.json,
                                     "Print the tables as JSON, for programs");
    app_.add_flag("--csv", request_.csv, "Print the tables as CSV")
        ->excludes(json);
    for (const Question& question : kQuestions) {
      CLI::App* const command = Add(question.name, question.description, 1);
      if (std::string(question.name) == "why") {
        command->add_flag("--check", request_.check,
                          "End with exit status 3 if there is a finding");
      }
    }
    // A list of TRACEs would also take NAME, so TRACE is a single option.
    CLI::App* const tensor =
        app_.add_subcommand("tensor", "The times of one tensor on all ranks");
    tensor->add_option("TRACE", trace_of_tensor_)->required()->type_name("");
    tensor->add_option("NAME", request_.tensor)->required()->type_name("");
    Add("diff", "Which part explains the difference of two traces", 2);
    AddOutput(Add("html", "Writes one HTML file for a browser", 1),
              "File to write; default: TRACE.html");
    const std::string packed = "File to write; gzipped if it ends in .gz";
    AddOutput(Add("repair", "Repairs a trace that is cut off or damaged", 1),
              packed)
        ->required();
    CLI::App* const merge =
        Add("merge",
            "Merges per-rank trace files (or those of a path) and aligns their "
            "clocks",
            kMany);
    AddOutput(merge, packed)->required();
    merge->add_flag("--force", request_.force,
                    "Also merge files without a clock offset, as if it were 0");
    CLI::App* const slice =
        Add("slice", "Extracts steps, a period or ranks of a trace", 1);
    AddOutput(slice, packed)->required();
    AddSliceFlags(*slice, request_.slice);
  }

  void Parse(std::vector<std::string> arguments) {
    if (arguments.size() >= 2 && !IsCommand(arguments[0])) {
      if (IsCommand(arguments[1])) {  // "TRACE why" means "why TRACE"
        std::swap(arguments[0], arguments[1]);
      } else if (arguments[0][0] != '-' && arguments[1][0] != '-') {
        throw CLI::ValidationError(
            absl::StrCat("neither '", arguments[0], "' nor '", arguments[1],
                         "' is a command"),
            "expected TRACE, or a command and its TRACE");
      }
    }
    std::reverse(arguments.begin(), arguments.end());
    app_.parse(std::move(arguments));
    if (command() == "tensor") {
      if (!request_.paths.empty()) {
        throw CLI::ExtrasError({request_.paths.front()});
      }
      request_.paths = {trace_of_tensor_};
    }
    if (request_.paths.empty()) throw CLI::RequiredError("TRACE");
  }

  support::EarlyEnd EndOfParsing(const CLI::ParseError& error) const {
    return support::EndOfParsing(app_, error);
  }
  const Request& request() const { return request_; }
  // Empty: the overview.
  std::string command() const {
    const auto commands = app_.get_subcommands();
    return commands.empty() ? "" : commands.front()->get_name();
  }

 private:
  bool IsCommand(const std::string& word) const {
    return !app_.get_subcommands([&](const CLI::App* command) {
                  return command->get_name() == word;
                })
                .empty();
  }

  CLI::App* Add(const std::string& name, const std::string& description,
                int traces) {
    CLI::App* const command = app_.add_subcommand(name, description);
    command->add_option("TRACE", request_.paths)
        ->required()
        ->expected(traces == kMany ? 1 : traces, traces)
        ->type_name("");
    return command;
  }

  CLI::Option* AddOutput(CLI::App* command, const std::string& help) {
    support::AddOverwrite(*command, request_.overwrite);
    return command->add_option("-o,--output", request_.output, help)
        ->type_name("FILE");
  }

  CLI::App app_;
  Request request_;
  std::string trace_of_tensor_;
};

// The files `paths`; a missing file is replaced by its per-rank trace files.
absl::StatusOr<std::vector<std::string>> FilesOf(
    const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    HVDLITE_ASSIGN_OR_RETURN(const std::vector<std::string> found,
                             timeline::FindTraceFiles(path));
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

// Runs a command that writes a file; nullopt if `command` is another one.
std::optional<absl::Status> Write(const std::string& command, Request request,
                                  Report* report) {
  constexpr std::array kWriting = {"html", "repair", "merge", "slice"};
  if (std::count(kWriting.begin(), kWriting.end(), command) == 0) {
    return std::nullopt;
  }
  const std::string& path = request.paths.front();
  if (command == "html" && request.output.empty()) {
    request.output = absl::StrCat(path, ".html");
  }
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                           FilesOf(request.paths));
  HVDLITE_RETURN_IF_ERROR(support::CheckOutputs({{"--output", request.output}},
                                                request.overwrite, files));
  if (command == "repair") return ReportRepair(path, request.output, report);
  if (command == "merge") {
    return ReportMerge(files, request.output, request.force, report);
  }
  if (command == "slice") {
    return SliceTrace(path, request.slice, request.output, report);
  }
  HVDLITE_ASSIGN_OR_RETURN(const std::unique_ptr<Examined> examined,
                           Read(path));
  HVDLITE_RETURN_IF_ERROR(WriteHtmlPage(*examined, request.output));
  report->AddLine(absl::StrCat("Written: ", request.output, " (",
                               examined->trace.slices.size(),
                               " events); open it in a browser"));
  return absl::OkStatus();
}

absl::Status Answer(const std::string& command, const Request& request,
                    int* exit_status, Report* report) {
  if (const auto written = Write(command, request, report)) return *written;
  HVDLITE_ASSIGN_OR_RETURN(const std::unique_ptr<Examined> examined,
                           Read(request.paths.front()));
  if (command.empty()) {
    ReportOverview(request, *examined, report);
  } else if (command == "tensor") {
    return ReportTensor(*examined, request.tensor, report);
  } else if (command == "diff") {
    HVDLITE_ASSIGN_OR_RETURN(const std::unique_ptr<Examined> other,
                             Read(request.paths.back()));
    ReportDifference(*examined, *other, report);
  } else {
    for (const Question& question : kQuestions) {
      if (command == question.name) question.answer(*examined, report);
    }
  }
  if (request.check && !examined->findings.empty()) *exit_status = kFindings;
  return absl::OkStatus();
}

}  // namespace

int RunViewer(const std::vector<std::string>& arguments, std::ostream& out,
              std::ostream& err) {
  CommandLine line;
  try {
    line.Parse(arguments);
  } catch (const CLI::ParseError& error) {
    return line.EndOfParsing(error).Tell(out, err);
  }
  const Request& request = line.request();
  Report report;
  int exit_status = 0;
  const absl::Status status =
      Answer(line.command(), request, &exit_status, &report);
  if (!status.ok()) {
    err << "timeline_viewer: " << status.message() << "\n";
    return absl::IsAlreadyExists(status) ? support::kInputErrorExitCode
                                         : kUnreadable;
  }
  // If the output file is standard output, the report goes to standard error.
  const bool to_stdout =
      request.output == "-" || request.output == "/dev/stdout";
  std::ostream& told = to_stdout ? err : out;
  told << (request.json  ? report.Json()
           : request.csv ? report.Csv()
                         : report.Text());
  told.flush();
  if (!told) {
    err << "timeline_viewer: cannot write to standard output\n";
    return kUnreadable;
  }
  return exit_status;
}

}  // namespace hvdlite::timeline_viewer
