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

// "1,2,4".
absl::StatusOr<std::vector<int>> ParseCounts(const std::string& text) {
  std::vector<int> counts;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    int& count = counts.emplace_back();
    if (!absl::SimpleAtoi(word, &count) || count < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "must be numbers from 1, with commas, as 1,2,4, but is ", text));
    }
  }
  return counts;
}

void AddRunFlags(CLI::App& app, Flags& flags) {
  app.add_option("-o,--output", flags.output,
                 "Folder for the results; what is there already is not run "
                 "again. Default: the SPEC's or the program's name");
  app.add_option("--launcher-program", flags.launcher,
                 "hvdliterun, or what takes its flags. Default: the one beside "
                 "this program");
  support::AddParsed(app, "--hosts", flags.hosts, ParseNames,
                     "Hosts that nodes are taken from, with commas, instead of "
                     "the SPEC's; they may be others when a sweep goes on");
  app.add_flag("--retry-failed", flags.retry_failed,
               "Run again what has failed before");
  app.add_option("--time-limit", flags.time_limit_seconds,
                 "Time limit of a run in seconds; 0: the SPEC's, or 600")
      ->check(support::NotNegative());
}

// Of run: what a SPEC would say.
void AddProgramFlags(CLI::App& app, Flags& flags) {
  support::AddParsed(app, "--ranks", flags.ranks, ParseCounts,
                     "Numbers of ranks on each node, as 1,2,4. "
                     "Default: all powers of two up to the cores of this "
                     "machine, and their number");
  support::AddParsed(app, "--nodes", flags.nodes, ParseCounts,
                     "Numbers of nodes, each with every number of --ranks, as "
                     "1,2; they need --hosts");
  support::AddParsed(app, "--threads", flags.threads, ParseCounts,
                     "Numbers of threads that compute on each rank, as "
                     "1 or 1,2. Default: as many as hvdliterun chooses, which "
                     "differ between numbers of ranks");
  app.add_option("--repeats", flags.repeats,
                 "Runs of each world; 0: the SPEC's, or 3")
      ->check(support::NotNegative());
  app.add_flag("--weak", flags.weak,
               "The program's work grows with its ranks, as with a batch of "
               "each: weak scaling");
  app.add_flag("--dry-run", flags.dry_run,
               "Print every command that would be run, and run none");
}

void AddCommands(CLI::App& app, Flags& flags) {
  CLI::App* run = app.add_subcommand(
      "run", "Run a program in several worlds, as a SPEC or --ranks say");
  run->add_option("SPEC|PROGRAM", flags.arguments,
                  "File in Protobuf's text format; or -- PROGRAM ARGUMENT..., "
                  "which writes a report where --report FILE, or {report} in "
                  "its arguments, says. A run of the smallest world comes "
                  "first: if it fails, so does the sweep")
      ->required();
  AddRunFlags(*run, flags);
  AddProgramFlags(*run, flags);

  CLI::App* report = app.add_subcommand(
      "report", "Write table, CSV, SVG and HTML of results again");
  report->add_option("DIR", flags.arguments, "Folder with the results")
      ->required()
      ->expected(1);

  CLI::App* compare = app.add_subcommand(
      "compare", "Tell whether the second of two results is faster");
  compare
      ->add_option("DIR", flags.arguments,
                   "Two folders with results of the same SPEC; DIR:SETTING "
                   "takes one setting of it")
      ->required()
      ->expected(2);
  compare->add_option("--fail-if", flags.fail_if,
                      "Exit code 1 if a configuration, or all together, are "
                      "slower by more than this (the whole 95 % interval), as "
                      "-5%");

  CLI::App* tune = app.add_subcommand(
      "tune", "Find the fastest setting of a program on this machine");
  tune->add_option("SPEC|PROGRAM", flags.arguments,
                   "A SPEC; or -- PROGRAM ARGUMENT...")
      ->required();
  AddRunFlags(*tune, flags);
  tune->add_option("--minutes", flags.minutes,
                   "Duration of the search, with what is in the folder "
                   "already; how much is tried follows from it and from what "
                   "a run takes; 0: 15")
      ->check(support::NotNegative());
  tune->add_option("--candidates", flags.candidates,
                   "Most settings of the first round; 0: the SPEC's, or "
                   "24 for each 15 minutes")
      ->check(support::NotNegative());
  tune->add_option("--final-repeats", flags.final_repeats,
                   "Most rounds of the last comparison; 0: the SPEC's, or "
                   "8")
      ->check(support::NotNegative());
}

// "scaling_sweep SPEC" is "scaling_sweep run SPEC".
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
      "Exit codes: 0 done; 2 a flag, a SPEC or a file is wrong; 3 compare's\n"
      "--fail-if; 1 anything else, as when no run of a world succeeded;\n"
      "128 + N after signal N.");
  Flags flags;
  AddCommands(app, flags);
  InsertRun(app, arguments);
  const bool has_dashes =
      std::count(arguments.begin(), arguments.end(), "--") > 0;
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& end) {
    support::EarlyEnd early = support::EndOfParsing(app, end);
    if (dynamic_cast<const CLI::ExtrasError*>(&end) != nullptr) {
      early.text +=
          "A program's own flags come after --, as in\n"
          "  scaling_sweep run --ranks 1,2 -- ./mine --epochs 3\n";
    }
    return {.flags = std::nullopt, .end = early};
  }
  flags.after_dashes = has_dashes;
  flags.command = app.get_subcommands().front()->get_name();
  return {.flags = flags, .end = {}};
}

}  // namespace hvdlite::scaling_sweep
