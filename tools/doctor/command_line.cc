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
  std::string text = "\nChecks (* measures, and is left out by --skip-slow):\n";
  for (const Check& check : AllChecks()) {
    absl::StrAppend(&text,
                    absl::StrFormat("  %-17s %s%s\n", check.name,
                                    check.slow ? "* " : "  ", check.sees));
  }
  absl::StrAppend(&text,
                  "\nExit codes: 0 nothing worse than a note, 1 failure, 2 "
                  "wrong flags, 3 warnings or problems.\n");
  return text;
}

void AddFlags(CLI::App& app, Flags& flags) {
  std::vector<std::string> names;
  for (const Check& check : AllChecks()) names.push_back(check.name);
  app.add_option("--check", flags.checks, "Run this check; repeatable")
      ->check(CLI::IsMember(names))
      ->allow_extra_args(false)
      ->default_str("");
  app.add_flag("--skip-slow", flags.skip_slow, "Leave out what is measured");
  app.add_option("--program", flags.program,
                 "Your trainer, whose libraries are looked at; it is not run. "
                 "Without it only those of hvdlite_doctor are known");
  CLI::Option* const json = app.add_option(
      "--json", flags.json,
      "File for the findings; -: standard output, instead of the table");
  support::AddOverwrite(app, flags.overwrite);
  app.add_flag("--no-mpi", flags.no_mpi, "Do not start MPI: this host alone");
  app.add_option("--watch", flags.watch_seconds,
                 "Check nothing, but watch this host's cores for so many "
                 "seconds: how busy each is, and with which processes")
      ->check(CLI::Range(0.1, 86400.0))
      ->excludes(json)
      ->default_str("");
  app.footer(Footer());
}

}  // namespace

support::CommandLine<Flags> ParseFlags(int argc, const char* const* argv) {
  return support::ParseFlags<Flags>(
      "hvdlite_doctor",
      "Looks for what makes training slow on this machine, and says what mends "
      "it. Alone it looks at this host; under mpirun or hvdliterun at all "
      "ranks, with the settings that a trainer would have in its place.",
      argc, argv, AddFlags, [](const Flags& flags) {
        if (!ChosenChecks(flags.checks, flags.skip_slow).empty()) return;
        throw support::InputError(absl::StrCat(
            "nothing is left to check: ", absl::StrJoin(flags.checks, ", "),
            " measures, and --skip-slow leaves that out; remove one of the two "
            "flags"));
      });
}

}  // namespace hvdlite::doctor
