#include "studies/bench_report/program.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>

#include "support/command_line.h"
#include "support/input_error.h"
#include "support/output_file.h"
#include "trainers/benchmark/run_comparison.h"

namespace hvdlite::bench_report {
namespace {

using trainers::BenchmarkTargets;
using trainers::Comparison;
using trainers::RunReports;

struct Flags {
  std::filesystem::path target;
  std::filesystem::path json;
  bool overwrite = false;
  std::vector<std::filesystem::path> runs;
};

void AddFlags(CLI::App& app, Flags& flags) {
  app.add_option("--target", flags.target,
                 "JSON object of items a second by benchmark to compare with; "
                 "without it only the deviation decides");
  app.add_option("--json", flags.json,
                 "Write the comparison to this file, too");
  support::AddOverwrite(app, flags.overwrite);
  app.add_option("RUN_DIR", flags.runs,
                 "Folders with the JSON reports of one run each, at least 4")
      ->required();
  app.footer("Exit status: 0 if the runs pass, 1 if not, 2 for wrong input.");
}

Comparison CompareRuns(const Flags& flags) {
  std::optional<BenchmarkTargets> targets;
  if (!flags.target.empty()) {
    targets = trainers::ReadBenchmarkTargets(flags.target);
  }
  std::vector<RunReports> runs;
  for (const std::filesystem::path& folder : flags.runs) {
    runs.push_back(trainers::ReadRunReports(folder));
  }
  return trainers::Compare(runs, targets);
}

}  // namespace

int RunBenchReport(const std::vector<std::string>& arguments, std::ostream& out,
                   std::ostream& err) {
  CLI::App app(
      "Merges the reports of several runs of the same benchmarks and says "
      "whether they are stable and fast enough.",
      "bench_report");
  support::AddVersion(app);
  Flags flags;
  AddFlags(app, flags);
  try {
    // CLI11 takes the last argument first.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    std::vector<std::string> inputs(flags.runs.begin(), flags.runs.end());
    inputs.push_back(flags.target);
    support::RequireOutputs({{"--json", flags.json}}, flags.overwrite, inputs);
    const Comparison comparison = CompareRuns(flags);
    out << trainers::ComparisonText(comparison) << std::flush;
    if (!flags.json.empty()) {
      trainers::WriteComparisonJson(flags.json, comparison);
    }
    return trainers::Judge(comparison).passes() ? 0 : 1;
  } catch (const CLI::ParseError& error) {
    return support::EndOfParsing(app, error).Tell(out, err);
  } catch (const support::InputError& error) {
    err << "bench_report: " << error.what() << "\n";
    return support::kInputErrorExitCode;
  }
}

}  // namespace hvdlite::bench_report
