#include "tools/hvdliterun/plan/flags_file.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/environment.h"

namespace hvdlite::launch {

std::string NearestFlag(const CLI::App& app, const std::string& word) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      known.push_back(absl::StrCat("--", name));
    }
  }
  return base::NearestName(word, known);
}

std::vector<CLI::ConfigItem> FlagsFile::from_config(std::istream& input) const {
  std::vector<CLI::ConfigItem> kept;
  for (CLI::ConfigItem& item : CLI::ConfigTOML::from_config(input)) {
    const CLI::Option& option = OptionOf(item);
    const auto& others = option.get_excludes();
    if (option.count() > 0 ||
        absl::c_any_of(others, [](auto* o) { return o->count() > 0; })) {
      continue;
    }
    // CLI11 splits values with commas into lists.
    if (option.get_items_expected_max() == 1) {
      item.inputs = {absl::StrJoin(item.inputs, ",")};
    }
    for (const std::string& name : option.get_lnames()) {
      taken_.insert(absl::StrCat("--", name));
    }
    kept.push_back(std::move(item));
  }
  return kept;
}

const CLI::Option& FlagsFile::OptionOf(const CLI::ConfigItem& item) const {
  const auto fail = [&](const std::string& what) {
    throw CLI::ConfigError(absl::StrCat(Path(), ": ", what),
                           CLI::ExitCodes::ConfigError);
  };
  if (!item.parents.empty()) {
    fail(absl::StrCat("[", absl::StrJoin(item.parents, "."),
                      "]: sections are not allowed; write only lines such as "
                      "'np = 4'"));
  }
  const std::string flag = absl::StrCat("--", item.name);
  const CLI::Option* option = app_.get_option_no_throw(flag);
  if (option == nullptr) {
    const std::string nearest = NearestFlag(app_, flag);
    fail(absl::StrCat(
        "'", item.name, "' is not a flag of hvdliterun (without its dashes)",
        nearest.empty()
            ? ""
            : absl::StrCat("; did you mean ", nearest.substr(2), "?")));
  }
  if (!option->get_configurable()) {
    fail(absl::StrCat("'", item.name, "' is allowed only on the command line"));
  }
  return *option;
}

std::string FlagsFile::WhatIsWrong(const std::string& message) const {
  return taken_.contains(message.substr(0, message.find(':')))
             ? absl::StrCat(Path(), ": ", message)
             : message;
}

void FlagsFile::Order(std::vector<Variable>& settings) const {
  if (taken_.empty()) return;
  const auto place = [&](const Variable& setting) {
    return std::pair(taken_.contains(setting.source),
                     setting.source != "--set");
  };
  std::stable_sort(settings.begin(), settings.end(),
                   [&](const Variable& a, const Variable& b) {
                     return place(a) < place(b);
                   });
  for (Variable& setting : settings) {
    if (!taken_.contains(setting.source)) continue;
    absl::StrAppend(&setting.source, " of ", Path());
  }
}

}  // namespace hvdlite::launch
