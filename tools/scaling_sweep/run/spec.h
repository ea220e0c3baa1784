// SPECs: what to measure, read, checked, and the placeholders in its texts:
// {report}, {ranks}, ...
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/scaling_sweep/run/sweep.pb.h"

namespace hvdlite::scaling_sweep {

// Messages within messages; a SPEC has far fewer.
inline constexpr int kMostNesting = 16;

// Parses a SPEC's text, checks it and fills in the defaults of repeats, time
// limit and cores. `hosts`, unless it is empty, replaces those of the text.
// Errors begin with `where`, a file's name, and for what is no text format with
// line and column.
absl::StatusOr<Spec> ParseSpec(const std::string& text,
                               const std::string& where,
                               const std::vector<std::string>& hosts = {});

// The same for a file, whose folder {spec_dir} in it stands for. NotFound if it
// cannot be read.
absl::StatusOr<Spec> LoadSpec(const std::string& path,
                              const std::vector<std::string>& hosts = {});

// What two SPECs must have in common for one to continue the other's results:
// all but worlds (where it does not tune), repeats, time limit, the hosts'
// names and how long tuning takes.
std::string Identity(const Spec& spec);

// InvalidArgument that names the field, what it holds and what it may hold.
absl::Status CheckSpec(const Spec& spec);
// The same of numbers and lists alone: also of a SPEC that was made of one.
absl::Status CheckLimits(const Spec& spec);

// InvalidArgument for "{name}" in lower case letters and '_' that is none of
// ours, with the nearest one that is, and `where`, a field's name.
absl::Status CheckPlaceholderNames(const std::string& where,
                                   const std::string& text);

// Calls `visit(field's name, text)` for every text of a setting in which
// placeholders are replaced, which it may change.
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

// The same for a SPEC with its settings and what tune chooses from.
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

// `word` with every "{name}" that `values` has replaced, in one pass.
std::string FillIn(const std::string& word,
                   const std::map<std::string, std::string>& values);

}  // namespace hvdlite::scaling_sweep
