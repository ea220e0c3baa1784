#include "tools/timeline_viewer/file_commands.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "support/output_file.h"
#include "timeline/read/trace_file.h"
#include "timeline/read/trace_merge.h"
#include "tools/timeline_viewer/repair.h"

namespace hvdlite::timeline_viewer {
namespace {

using timeline::Cell;
using timeline::Report;
using timeline::Table;

constexpr std::array kCommands = {"repair", "merge", "slice"};

// "100-110", "100-" or "100", from 1.
std::string ParseSteps(const std::string& text,
                       std::optional<std::pair<int64_t, int64_t>>* steps) {
  const std::vector<std::string> ends = absl::StrSplit(text, '-');
  int64_t first = 0;
  int64_t last = std::numeric_limits<int64_t>::max();
  const bool is_right =
      ends.size() <= 2 && absl::SimpleAtoi(ends.front(), &first) &&
      (ends.size() == 1
           ? (last = first, true)
           : ends.back().empty() || absl::SimpleAtoi(ends.back(), &last)) &&
      first >= 1 && last >= first;
  if (!is_right)
    return "'" + text + "' is no steps such as 100-110, 100- or 100";
  *steps = {first, last};
  return "";
}

// "0,3".
std::string ParseRanks(const std::string& text, std::set<int64_t>* ranks) {
  ranks->clear();
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    int64_t rank = 0;
    if (!absl::SimpleAtoi(item, &rank)) {
      return "'" + text + "' is no list of ranks such as 0,3";
    }
    ranks->insert(rank);
  }
  return "";
}

// Milliseconds that are a time (95 years at most), as ns.
std::string ParseTime(const std::string& text,
                      std::optional<int64_t>* time_ns) {
  constexpr double kLatestMs = 3e12;
  double time_ms = 0;
  if (!absl::SimpleAtod(text, &time_ms) || !(std::abs(time_ms) <= kLatestMs)) {
    return "'" + text + "' is no time in milliseconds";
  }
  *time_ns = std::llround(time_ms * 1e6);
  return "";
}

// The files that were named, or the parts of a trace that was.
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

absl::Status Merge(const std::vector<std::string>& files,
                   const std::string& out, bool force, Report* report) {
  absl::StatusOr<std::vector<timeline::MergedTrace>> merged =
      timeline::MergeTraces(files, out, {.force = force});
  if (absl::IsFailedPrecondition(merged.status())) {
    return absl::FailedPreconditionError(absl::StrCat(
        merged.status().message(), "; --force takes them as they are"));
  }
  HVDLITE_RETURN_IF_ERROR(merged.status());
  Table table = {.name = "merged",
                 .columns = {"rank", "file", "clock offset us",
                             "uncertainty us", "events in the file"},
                 .rows = {}};
  int64_t events = 0;
  bool all_known = true;
  int64_t largest_ns = 0;  // of the uncertainties
  int64_t second_ns = 0;
  for (const timeline::MergedTrace& trace : *merged) {
    events += trace.events;
    for (const std::string& warning : trace.warnings) {
      report->AddLine(absl::StrCat("Warning: ", warning));
    }
    all_known &= !trace.clocks.empty();
    for (const timeline::ProcessClock& clock : trace.clocks) {
      const std::optional<int64_t> uncertainty_ns = clock.uncertainty_ns;
      all_known &= uncertainty_ns.has_value();
      if (uncertainty_ns.value_or(0) > largest_ns) {
        second_ns = std::exchange(largest_ns, *uncertainty_ns);
      } else {
        second_ns = std::max(second_ns, uncertainty_ns.value_or(0));
      }
      table.rows.push_back(
          {clock.pid, trace.path,
           Cell::Number(static_cast<double>(clock.offset_ns) / 1e3, 3),
           uncertainty_ns.has_value()
               ? Cell::Number(static_cast<double>(*uncertainty_ns) / 1e3, 3)
               : Cell("not known"),
           trace.events});
    }
  }
  report->AddTable(std::move(table));
  report->AddLine(absl::StrCat(out, ": ", events, " events of ", files.size(),
                               files.size() == 1 ? " file" : " files"));
  report->AddLine(
      all_known
          ? absl::StrFormat("Times of two ranks agree to %.3f us",
                            static_cast<double>(largest_ns + second_ns) / 1e3)
          : "How well times of the ranks agree is not known: not all tell the "
            "uncertainty of their clock offsets");
  return absl::OkStatus();
}

}  // namespace

void FileCommands::AddTo(CLI::App* app, std::vector<std::string>* paths) {
  paths_ = paths;
  const auto add = [&](const char* name, const char* description) {
    CLI::App* const command = app->add_subcommand(name, description);
    const bool many = std::string(name) == "merge";
    command->add_option("TRACE", *paths)
        ->required()
        ->type_name("")
        ->expected(1, many ? std::numeric_limits<int>::max() : 1);
    command
        ->add_option("-o,--output", out_,
                     "file to write; packed if it ends in .gz")
        ->required()
        ->type_name("FILE");
    support::AddOverwrite(*command, overwrite_);
    return command;
  };
  add("repair", "Makes a trace whole that is cut off or damaged");
  add("merge",
      "One trace of parts (or of the path beside which they lie), clocks "
      "aligned")
      ->add_flag("--force", force_,
                 "also what tells no clock offset, as if it were 0");
  CLI::App* const slice =
      add("slice", "The part of a trace that is within a time");
  CLI::Option* const steps =
      slice->add_option("--steps", steps_, "training steps, such as 100-110")
          ->type_name("STEPS")
          ->check([this](const std::string& text) {
            return ParseSteps(text, &slice_.steps);
          });
  slice->add_option("--from", from_ms_, "time since the trace's first event")
      ->type_name("MS")
      ->excludes(steps)
      ->check([this](const std::string& text) {
        return ParseTime(text, &slice_.from_ns);
      });
  slice->add_option("--to", to_ms_, "time that is no longer in it")
      ->type_name("MS")
      ->excludes(steps)
      ->check([this](const std::string& text) {
        return ParseTime(text, &slice_.to_ns);
      });
  slice->add_option("--ranks", ranks_, "ranks, such as 0,3; all without it")
      ->type_name("RANKS")
      ->check([this](const std::string& text) {
        return ParseRanks(text, &slice_.ranks);
      });
}

bool FileCommands::Has(const std::string& command) {
  return std::find(kCommands.begin(), kCommands.end(), command) !=
         kCommands.end();
}

absl::Status FileCommands::Run(const std::string& command,
                               Report* report) const {
  const std::string& path = paths_->front();
  HVDLITE_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                           FilesOf(*paths_));
  HVDLITE_RETURN_IF_ERROR(
      support::CheckOutputs({{"--output", out_}}, overwrite_, files));
  if (command == "repair") return ReportRepair(path, out_, report);
  if (command == "merge") return Merge(files, out_, force_, report);
  return SliceTrace(path, slice_, out_, report);
}

}  // namespace hvdlite::timeline_viewer
