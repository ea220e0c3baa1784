#include "tools/timeline_viewer/file_commands.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "tools/timeline_viewer/repair.h"
#include "tools/timeline_viewer/validate.h"
#include "tools/timeline_viewer/viewer.h"

namespace hvdlite::timeline_viewer {
namespace {

constexpr std::array kCommands = {"validate", "repair"};

}  // namespace

void FileCommands::AddTo(CLI::App* app, std::vector<std::string>* paths) {
  paths_ = paths;
  const auto add = [&](const char* name, const char* description,
                       bool has_out) {
    CLI::App* const command = app->add_subcommand(name, description);
    CLI::Option* const traces =
        command->add_option("TRACE", *paths)->required()->type_name("");
    traces->expected(1);
    if (has_out) {
      command
          ->add_option("-o,--out", out_,
                       "file to write; packed if it ends in .gz")
          ->required()
          ->type_name("FILE");
    }
    return command;
  };
  add("validate",
      "Whether the trace keeps the rules of Chrome's trace format and of its "
      "viewers; exit status 3 if not",
      false);
  add("repair", "Makes a trace whole that is cut off or damaged", true);
}

bool FileCommands::Has(const std::string& command) {
  return std::find(kCommands.begin(), kCommands.end(), command) !=
         kCommands.end();
}

absl::Status FileCommands::Run(const std::string& command, int* exit_status,
                               Report* report) const {
  const std::string& path = paths_->front();
  if (command == "validate") {
    HVDLITE_ASSIGN_OR_RETURN(const bool any, ReportViolations(path, report));
    if (any) *exit_status = kViolations;
    return absl::OkStatus();
  }
  return ReportRepair(path, out_, report);
}

}  // namespace hvdlite::timeline_viewer
