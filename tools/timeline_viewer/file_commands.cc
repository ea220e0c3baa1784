#include "tools/timeline_viewer/file_commands.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "tools/timeline_viewer/validate.h"
#include "tools/timeline_viewer/viewer.h"

namespace hvdlite::timeline_viewer {
namespace {

constexpr std::array kCommands = {"validate"};

}  // namespace

void FileCommands::AddTo(CLI::App* app, std::vector<std::string>* paths) {
  paths_ = paths;
  app->add_subcommand("validate",
                      "Whether the trace keeps the rules of Chrome's trace "
                      "format and of its viewers; exit status 3 if not")
      ->add_option("TRACE", *paths)
      ->required()
      ->expected(1)
      ->type_name("");
}

bool FileCommands::Has(const std::string& command) {
  return std::find(kCommands.begin(), kCommands.end(), command) !=
         kCommands.end();
}

absl::Status FileCommands::Run(const std::string&, int* exit_status,
                               Report* report) const {
  HVDLITE_ASSIGN_OR_RETURN(const bool any,
                           ReportViolations(paths_->front(), report));
  if (any) *exit_status = kViolations;
  return absl::OkStatus();
}

}  // namespace hvdlite::timeline_viewer
