// The subcommands `run` and `report`.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/environment.h"
#include "base/status_macros.h"
#include "support/output_file.h"
#include "support/text_table.h"
#include "tools/scaling_sweep/commands.h"
#include "tools/scaling_sweep/report/scaling_report.h"
#include "tools/scaling_sweep/report/scaling_text.h"
#include "tools/scaling_sweep/run/command.h"
#include "tools/scaling_sweep/run/sweep_runner.h"

namespace hvdlite::scaling_sweep {
namespace {

namespace fs = std::filesystem;

// Prints the table, and writes it and its other forms into the directory.
absl::Status WriteReports(const std::string& directory, std::ostream& out) {
  HVDLITE_ASSIGN_OR_RETURN(const Results results, ReadResults(directory));
  if (results.spec.has_tune()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", directory,
        "' contains results of tune; to print its ranking, run tune again with "
        "this --output"));
  }
  HVDLITE_ASSIGN_OR_RETURN(const ScalingTable table,
                           MakeTable(results, ReadSharesBelow(directory)));
  const std::string text = TableText(table);
  const fs::path root = directory;
  HVDLITE_RETURN_IF_ERROR(support::WriteNewFile(root / "table.txt", text));
  HVDLITE_RETURN_IF_ERROR(
      support::WriteNewFile(root / "table.csv", ScalingCsv(table)));
  HVDLITE_RETURN_IF_ERROR(
      support::WriteNewFile(root / "report.html", HtmlReport(table)));
  for (const auto& [name, chart] : ScalingCharts(table)) {
    HVDLITE_RETURN_IF_ERROR(
        support::WriteNewFile(root / name, support::ChartDocument(chart)));
  }
  out << "\n" << text << "\n" << (root / "report.html").string() << "\n";
  return absl::OkStatus();
}

// Invents host names for a dry run without hosts.
void InventHosts(const std::vector<Configuration>& configurations, Spec& spec) {
  if (spec.host_size() > 0) return;
  int nodes = 1;
  for (const Configuration& configuration : configurations) {
    nodes = std::max(nodes, configuration.nodes);
  }
  for (int node = 1; nodes > 1 && node <= nodes; ++node) {
    spec.add_host(absl::StrCat("node", node));
  }
}

// Leaves out worlds that need more hosts than are named; a later command can
// name more. It is an error if no hosts are named, or if no world is left.
absl::Status LeaveOutWithoutHosts(const Spec& spec,
                                  std::vector<Configuration>& configurations,
                                  std::ostream& out) {
  const auto left_out = std::stable_partition(
      configurations.begin(), configurations.end(),
      [&](const Configuration& one) { return CheckHosts(spec, one).ok(); });
  if (left_out == configurations.end()) return absl::OkStatus();
  if (spec.host().empty() || left_out == configurations.begin()) {
    return CheckHosts(spec, *left_out);
  }
  const auto [fewest, most] = std::minmax_element(
      left_out, configurations.end(),
      [](const auto& a, const auto& b) { return a.nodes < b.nodes; });
  out << "left out: "
      << support::Counted(configurations.end() - left_out, "configuration")
      << " of "
      << (fewest->nodes == most->nodes
              ? absl::StrCat(most->nodes)
              : absl::StrCat(fewest->nodes, " to ", most->nodes))
      << " nodes; hosts named: " << spec.host_size()
      << ". To run the rest, repeat the command with more --hosts\n";
  configurations.erase(left_out, configurations.end());
  return absl::OkStatus();
}

// Describes the configurations without a successful run.
std::vector<std::string> Failed(
    const std::vector<Configuration>& configurations,
    const std::vector<Sample>& samples) {
  std::vector<std::string> failed;
  for (const Configuration& configuration : configurations) {
    const std::vector<Sample> runs = SamplesOf(samples, Key(configuration));
    if (std::none_of(runs.begin(), runs.end(), [](const Sample& sample) {
          return sample.items_per_second.has_value();
        })) {
      failed.push_back(Describe(configuration));
    }
  }
  return failed;
}

// Returns a comment and the command of the first repeat for each configuration.
std::string DryRunText(const Spec& spec,
                       const std::vector<Configuration>& configurations,
                       const std::string& directory,
                       const std::string& launcher) {
  std::string text;
  for (const Configuration& configuration : configurations) {
    const std::string of_run =
        fs::absolute(fs::path(directory) / DirectoryOf(configuration) / "1");
    const Command command =
        BuildCommand(spec, configuration, FilesIn(of_run, spec, /*repeat=*/0),
                     launcher, /*oversubscribed=*/false);
    absl::StrAppend(&text, "# ", Describe(configuration), "\n");
    for (const auto& [name, value] : command.environment) {
      absl::StrAppend(&text, ShellText({absl::StrCat(name, "=", value)}), " ");
    }
    absl::StrAppend(&text, ShellText(command.arguments), "\n");
  }
  const size_t runs = configurations.size() * spec.repeats();
  absl::StrAppend(&text, "# ", runs, " runs: each command ", spec.repeats(),
                  spec.repeats() == 1 ? " time" : " times", ", at most ",
                  spec.time_limit_seconds(), " s\n");
  return text;
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
  HVDLITE_ASSIGN_OR_RETURN(std::vector<Configuration> configurations,
                           Configurations(spec));
  if (flags.dry_run) InventHosts(configurations, spec);
  HVDLITE_RETURN_IF_ERROR(LeaveOutWithoutHosts(spec, configurations, out));
  const std::string directory =
      flags.output.empty() ? spec.name() + ".sweep" : flags.output;
  if (flags.dry_run) {
    out << DryRunText(spec, configurations, directory,
                      flags.launcher.empty() ? "hvdliterun" : flags.launcher);
    return 0;
  }
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
      configurations, RunOrder(configurations.size(), spec.repeats()));
  if (absl::IsCancelled(status)) {
    out << "interrupted; run the command again to continue" << std::endl;
    return 128 + runner.stop_signal();
  }
  HVDLITE_RETURN_IF_ERROR(status);
  HVDLITE_RETURN_IF_ERROR(WriteReports(directory, out));
  const std::vector<std::string> failed =
      Failed(configurations, results.samples());
  if (failed.empty()) return 0;
  out << "these have no successful run (--retry-failed runs them again):\n  "
      << absl::StrJoin(failed, "\n  ") << "\n";
  return 1;
}

absl::StatusOr<int> ReportCommand(const Flags& flags, std::ostream& out) {
  HVDLITE_RETURN_IF_ERROR(WriteReports(flags.arguments.front(), out));
  return 0;
}

}  // namespace hvdlite::scaling_sweep
