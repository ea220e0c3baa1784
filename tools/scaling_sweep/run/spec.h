// Reads and checks a spec, which describes what to measure, and handles the
// placeholders in its texts: {report}, {ranks}, ...
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/scaling_sweep/run/sweep.pb.h"

namespace hvdlite::scaling_sweep {

// Limit for nested messages; a spec has far fewer levels.
inline constexpr int kMostNesting = 16;

// Parses and checks the text of a spec, and sets the defaults of repeats, time
// limit and cores. If `hosts` is not empty, it replaces those of the text.
// Errors begin with `where`, a file name; syntax errors also have the line and
// the column.
absl::StatusOr<Spec> ParseSpec(const std::string& text,
                               const std::string& where,
                               const std::vector<std::string>& hosts = {});

// The same for a file. {spec_dir} is the directory of the file. NotFound if the
// file cannot be read.
absl::StatusOr<Spec> LoadSpec(const std::string& path,
                              const std::vector<std::string>& hosts = {});

// Whether a sweep of one spec can continue the results of the other. Worlds
// (unless it tunes), repeats, time limit, host names and the duration of tuning
// may differ.
std::string Identity(const Spec& spec);

// Returns InvalidArgument with the field, its value and its allowed values.
absl::Status CheckSpec(const Spec& spec);
// The same, but only for numbers and lists. Also valid for a spec that was
// derived from another.
absl::Status CheckLimits(const Spec& spec);

// Returns InvalidArgument for an unknown "{name}" of lower-case letters and
// '_', with the nearest known name and `where`, a field name.
absl::Status CheckPlaceholderNames(const std::string& where,
                                   const std::string& text);

// Calls `visit(field name, text)` for every text of a setting that may contain
// placeholders. `visit` may change the text.
template <typename Visitor>
void VisitTexts(Setting& setting, const Visitor& visit) {
  for (std::string& text : *setting.mutable_argument()) {
    visit("argument", text);
  }
  for (std::string& text : *setting.mutable_launcher_flag()) {
    visit("launcher_flag", text);
  }
  for (Variable& variable : *setting.mutable_environment()) {
    visit("environment", *variable.mutable_value());
  }
}

// The same for a spec with its settings and the options of tune.
template <typename Visitor>
void VisitTexts(Spec& spec, const Visitor& visit) {
  for (std::string& text : *spec.mutable_command()) visit("command", text);
  for (std::string& text : *spec.mutable_launcher_flag()) {
    visit("launcher_flag", text);
  }
  for (Variable& variable : *spec.mutable_environment()) {
    visit("environment", *variable.mutable_value());
  }
  for (Setting& setting : *spec.mutable_setting()) VisitTexts(setting, visit);
  if (!spec.has_tune()) return;
  for (Dimension& dimension : *spec.mutable_tune()->mutable_dimension()) {
    for (Setting& option : *dimension.mutable_option()) {
      VisitTexts(option, visit);
    }
  }
}

// Replaces every "{name}" in `argument` that `values` contains, in one pass.
std::string FillIn(const std::string& argument,
                   const std::map<std::string, std::string>& values);

}  // namespace hvdlite::scaling_sweep
