#include "tools/doctor/command_line.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "support/command_line.h"
#include "support/input_error.h"
#include "support/output_file.h"
#include "tools/doctor/check.h"
#include "tools/doctor/doctor.h"

namespace hvdlite::doctor {
namespace {

std::string Footer() {
  std::string text = "\nChecks (* measures; --skip-slow skips it):\n";
  for (const Check& check : AllChecks()) {
    absl::StrAppend(&text,
                    absl::StrFormat("  %-17s %s%s\n", check.name,
                                    check.slow ? "* " : "  ", check.sees));
  }
  absl::StrAppend(&text,
                  "\nExit codes: 0 nothing worse than a note, 1 failure, 2 "
                  "wrong flags, 3 a warning or a problem.\n");
  return text;
}

void AddFlags(CLI::App& app, Flags& flags) {
  std::vector<std::string> names;
  for (const Check& check : AllChecks()) names.push_back(check.name);
  app.add_option("--check", flags.checks, "Run only this check; repeatable")
      ->check(CLI::IsMember(names))
      ->allow_extra_args(false)
      ->default_str("");
  app.add_flag("--skip-slow", flags.skip_slow, "Skip the checks that measure");
  app.add_option("--program", flags.program,
                 "Your trainer: its libraries are examined; it is not run. "
                 "Without this flag only hvdlite_doctor's own libraries are "
                 "known");
  CLI::Option* const json = app.add_option(
      "--json", flags.json,
      "JSON file for the findings; -: standard output, without the table");
  support::AddOverwrite(app, flags.overwrite);
  app.add_flag("--no-mpi", flags.no_mpi,
               "Do not start MPI; check only this host");
  app.add_option("--watch", flags.watch_seconds,
                 "Instead of checking, watch this host's cores for this many "
                 "seconds and show the load of each and its processes")
      ->check(CLI::Range(0.1, 86400.0))
      ->excludes(json)
      ->default_str("");
  app.footer(Footer());
}

}  // namespace

support::CommandLine<Flags> ParseFlags(int argc, const char* const* argv) {
  return support::ParseFlags<Flags>(
      "hvdlite_doctor",
      "Checks this machine for problems that make training slow, and prints "
      "how to fix each. Without a launcher it checks this host. Under mpirun "
      "or hvdliterun it checks all ranks, with the settings that a trainer "
      "started in the same way has.",
      argc, argv, AddFlags, [](const Flags& flags) {
        if (!ChosenChecks(flags.checks, flags.skip_slow).empty()) return;
        throw support::InputError(
            absl::StrCat("no check is left to run: --skip-slow skips ",
                         absl::StrJoin(flags.checks, ", "),
                         "; remove --skip-slow or --check"));
      });
}

}  // namespace hvdlite::doctor
