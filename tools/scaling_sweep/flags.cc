#include "tools/scaling_sweep/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "support/flags.h"

namespace hvdlite::scaling_sweep {
namespace {

absl::StatusOr<std::vector<std::string>> ParseNames(const std::string& text) {
  return std::vector<std::string>(absl::StrSplit(text, ','));
}

// Parses "1,2,4".
absl::StatusOr<std::vector<int>> ParseCounts(const std::string& text) {
  std::vector<int> counts;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    int& count = counts.emplace_back();
    if (!absl::SimpleAtoi(word, &count) || count < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "must be a list of numbers above 0, such as 1,2,4, but is ", text));
    }
  }
  return counts;
}

void AddRunFlags(CLI::App& app, Flags& flags) {
  app.add_option("-o,--output", flags.output,
                 "Directory for the results; runs whose results are there are "
                 "not repeated. Default: NAME.sweep, with the name of the spec "
                 "or the program");
  app.add_option("--launcher-program", flags.launcher,
                 "Launcher: hvdliterun, or a program with the same flags. "
                 "Default: the hvdliterun beside this program");
  support::AddParsed(app, "--hosts", flags.hosts, ParseNames,
                     "Comma-separated list of hosts to run on, instead of the "
                     "hosts of the spec file; they may differ from the hosts "
                     "of earlier runs of the sweep");
  app.add_flag("--retry-failed", flags.retry_failed,
               "Repeat runs that failed before");
  app.add_option("--time-limit", flags.time_limit_seconds,
                 "Time limit for one run in seconds; 0: the limit in the spec "
                 "file, or 600")
      ->check(support::NotNegative());
}

// Adds the flags of `run` that replace a spec file.
void AddProgramFlags(CLI::App& app, Flags& flags) {
  support::AddParsed(app, "--ranks", flags.ranks, ParseCounts,
                     "Numbers of ranks on each node, such as 1,2,4. "
                     "Default: all powers of two up to the number of cores of "
                     "this machine, and that number");
  support::AddParsed(app, "--nodes", flags.nodes, ParseCounts,
                     "Numbers of nodes, such as 1,2; each runs with every "
                     "number of --ranks. Needs --hosts");
  support::AddParsed(app, "--threads", flags.threads, ParseCounts,
                     "Numbers of computing threads of each rank, such as 1 or "
                     "1,2. Default: hvdliterun's choice, which depends on the "
                     "number of ranks");
  app.add_option("--repeats", flags.repeats,
                 "Number of runs of each world; 0: the number in the spec "
                 "file, or 3")
      ->check(support::NotNegative());
  app.add_flag("--weak", flags.weak,
               "Weak scaling: the program's work grows with the number of "
               "ranks, such as one mini-batch for each rank");
  app.add_flag("--dry-run", flags.dry_run,
               "Print all commands without running them");
}

void AddCommands(CLI::App& app, Flags& flags) {
  CLI::App* run = app.add_subcommand(
      "run", "Run a program in the worlds of a spec file, --ranks or --nodes");
  run->add_option("SPEC|PROGRAM", flags.arguments,
                  "Spec file (in Protobuf's text format); or -- PROGRAM "
                  "ARGUMENT... The program must write a report to the file of "
                  "--report FILE, or of {report} in its arguments. The "
                  "smallest world runs first; if it fails, the sweep ends")
      ->required();
  AddRunFlags(*run, flags);
  AddProgramFlags(*run, flags);

  CLI::App* report = app.add_subcommand(
      "report", "Write the table, CSV, SVG and HTML of results again");
  report->add_option("DIR", flags.arguments, "Directory with the results")
      ->required()
      ->expected(1);

  CLI::App* compare = app.add_subcommand(
      "compare", "Report whether the second of two results is faster");
  compare
      ->add_option("DIR", flags.arguments,
                   "Two directories with results of the same spec file; "
                   "DIR:SETTING selects one setting")
      ->required()
      ->expected(2);
  compare->add_option("--fail-if", flags.fail_if,
                      "Exit with code 3 if a configuration, or all together, "
                      "are slower by more than this, such as -5% (the whole "
                      "95 % interval must be below it)");

  CLI::App* tune = app.add_subcommand(
      "tune", "Find the fastest setting of a program on this machine");
  tune->add_option("SPEC|PROGRAM", flags.arguments,
                   "Spec file; or -- PROGRAM ARGUMENT...")
      ->required();
  AddRunFlags(*tune, flags);
  tune->add_option("--minutes", flags.minutes,
                   "Time for the search in minutes, including the runs whose "
                   "results are in the directory. It decides how many "
                   "settings are tried; 0: 15")
      ->check(support::NotNegative());
  tune->add_option("--candidates", flags.candidates,
                   "Maximum number of settings in the first round; 0: the "
                   "number in the spec file, or 24 per 15 minutes")
      ->check(support::NotNegative());
  tune->add_option("--final-repeats", flags.final_repeats,
                   "Maximum number of rounds of the last comparison; 0: the "
                   "number in the spec file, or 8")
      ->check(support::NotNegative());
}

// Makes "scaling_sweep run SPEC" of "scaling_sweep SPEC".
void InsertRun(const CLI::App& app, std::vector<std::string>& arguments) {
  if (arguments.empty()) return;
  for (const char* own : {"--help", "-h", "--version"}) {
    if (arguments.front() == own) return;
  }
  for (const CLI::App* command : app.get_subcommands(/*filter=*/{})) {
    if (command->get_name() == arguments.front()) return;
  }
  arguments.insert(arguments.begin(), "run");
}

}  // namespace

support::CommandLine<Flags> ParseCommandLine(
    std::vector<std::string> arguments) {
  CLI::App app(
      "Measures how a training scales over ranks, threads, mappings and\n"
      "settings, compares results, and finds the fastest settings.\n"
      "See docs/scaling_sweep.md.\n\n"
      "  scaling_sweep SPEC                    the same as: scaling_sweep run "
      "SPEC\n"
      "  scaling_sweep run -- ./mine --epochs 3\n"
      "  scaling_sweep run --ranks 1,2,4 -- ./mine --epochs 3\n"
      "  scaling_sweep compare A B --fail-if -5%\n"
      "  scaling_sweep tune -- train_transformer --data-dir DIR --epochs 3\n",
      "scaling_sweep");
  support::AddVersion(app);
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 success; 2 wrong flag, spec file or other file; 3 slower\n"
      "than compare's --fail-if allows; 1 other errors, such as a world\n"
      "without a successful run; 128 + N after signal N.");
  Flags flags;
  AddCommands(app, flags);
  InsertRun(app, arguments);
  const bool has_dashes =
      std::count(arguments.begin(), arguments.end(), "--") > 0;
  std::reverse(arguments.begin(), arguments.end());  // CLI11 expects this
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& end) {
    support::EarlyEnd early = support::EndOfParsing(app, end);
    if (dynamic_cast<const CLI::ExtrasError*>(&end) != nullptr) {
      early.text +=
          "Put the program and its flags after --, for example:\n"
          "  scaling_sweep run --ranks 1,2 -- ./mine --epochs 3\n";
    }
    return {.flags = std::nullopt, .end = early};
  }
  flags.after_dashes = has_dashes;
  flags.command = app.get_subcommands().front()->get_name();
  return {.flags = flags, .end = {}};
}

}  // namespace hvdlite::scaling_sweep
