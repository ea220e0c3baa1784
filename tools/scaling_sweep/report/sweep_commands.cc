// run and report.
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/environment.h"
#include "base/status_macros.h"
#include "tools/scaling_sweep/commands.h"
#include "tools/scaling_sweep/report/scaling_report.h"
#include "tools/scaling_sweep/report/scaling_table.h"
#include "tools/scaling_sweep/requested_spec.h"
#include "tools/scaling_sweep/run/sweep_runner.h"
#include "tools/support/text_table.h"

namespace hvdlite::scaling_sweep {
namespace {

namespace fs = std::filesystem;

absl::Status WriteFile(const fs::path& file, const std::string& text) {
  std::ofstream stream(file, std::ios::binary);
  stream << text;
  stream.close();
  if (stream) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot write '", file.string(), "'"));
}

// Prints the table, and writes it and its other forms into the folder. Returns
// whether any run has succeeded.
absl::StatusOr<bool> WriteReports(const std::string& directory,
                                  std::ostream& out) {
  HVDLITE_ASSIGN_OR_RETURN(const Results results, ReadResults(directory));
  if (results.spec.has_tune()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", directory,
        "' holds results of tune, which prints its ranking when it is run "
        "again with this --output"));
  }
  HVDLITE_ASSIGN_OR_RETURN(const ScalingTable table,
                           MakeTable(results, ReadSharesBelow(directory)));
  bool any = false;
  for (const Row& row : table.rows) any |= row.items_per_second.has_value();
  const TextCells cells = CellsOf(table);
  std::string text = support::TextTable(cells.titles, cells.rows, cells.keys);
  for (const std::string& note : Notes(table)) {
    absl::StrAppend(&text, support::Wrapped(note));
  }
  const fs::path folder = directory;
  HVDLITE_RETURN_IF_ERROR(WriteFile(folder / "table.txt", text));
  HVDLITE_RETURN_IF_ERROR(WriteFile(folder / "table.csv", ScalingCsv(table)));
  HVDLITE_RETURN_IF_ERROR(WriteFile(folder / "report.html", HtmlReport(table)));
  for (const auto& [name, chart] : ScalingCharts(table)) {
    HVDLITE_RETURN_IF_ERROR(
        WriteFile(folder / name, support::ChartDocument(chart)));
  }
  out << "\n" << text << "\n" << (folder / "report.html").string() << "\n";
  return any;
}

}  // namespace

std::string LauncherOf(const Flags& flags) {
  if (!flags.launcher.empty()) return flags.launcher;
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return error ? "hvdliterun" : (self.parent_path() / "hvdliterun").string();
}

absl::StatusOr<int> RunCommand(const Flags& flags, std::ostream& out) {
  HVDLITE_ASSIGN_OR_RETURN(Spec spec, RequestedSpec(flags));
  spec.clear_tune();
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<Configuration> configurations,
                           Configurations(spec));
  const std::string directory =
      flags.output.empty() ? spec.name() + ".sweep" : flags.output;
  HVDLITE_ASSIGN_OR_RETURN(ResultsFile results,
                           ResultsFile::Open(directory, spec));
  const support::SignalPipe stop;
  SweepRunner runner({.spec = spec,
                      .launcher = LauncherOf(flags),
                      .machine = support::ThisMachine(),
                      .environment = base::ProcessEnvironment(),
                      .retry_failed = flags.retry_failed},
                     results, stop, out);
  const absl::Status status = runner.RunAll(
      configurations, RunOrder(configurations.size(), spec.repeats(),
                               spec.order(), spec.seed()));
  if (absl::IsCancelled(status)) {
    out << "interrupted; the same command goes on from here" << std::endl;
    return 128 + runner.stop_signal();
  }
  HVDLITE_RETURN_IF_ERROR(status);
  HVDLITE_ASSIGN_OR_RETURN(const bool any, WriteReports(directory, out));
  return any ? 0 : 1;
}

absl::StatusOr<int> ReportCommand(const Flags& flags, std::ostream& out) {
  HVDLITE_RETURN_IF_ERROR(WriteReports(flags.arguments.front(), out).status());
  return 0;
}

}  // namespace hvdlite::scaling_sweep
