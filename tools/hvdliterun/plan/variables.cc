#include "tools/hvdliterun/plan/variables.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hvdlite::launch {
namespace {

constexpr char kEnvironment[] = "environment";

}  // namespace

Variables::Variables(base::Environment user) : user_(std::move(user)) {}

void Variables::Set(const std::string& name, const std::string& value,
                    const std::string& source) {
  if (chosen_.contains(name)) return;
  const std::optional<std::string> old = user_.get(name);
  if (old.has_value() && *old != value) {
    Note(absl::StrCat(source, " overrides the environment: ", name, "=", *old,
                      " becomes ", name, "=", value));
  }
  chosen_[name] = {.name = name, .value = value, .source = source};
}

bool Variables::Offer(const std::string& name, const std::string& value,
                      const std::string& source) {
  if (chosen_.contains(name)) return false;
  if (const std::optional<std::string> own = user_.get(name)) {
    if (*own != value) {
      Note(absl::StrCat(name, "=", *own, " of the environment is kept (",
                        source, " would set ", value, ")"));
    }
    chosen_[name] = {.name = name, .value = *own, .source = kEnvironment};
    return false;
  }
  chosen_[name] = {.name = name, .value = value, .source = source};
  return true;
}

void Variables::AppendPath(const std::string& name, const std::string& path,
                           const std::string& source) {
  const std::string own = Get(name).value_or("");
  const std::string paths = own.empty() ? path : absl::StrCat(own, ":", path);
  const auto chosen = chosen_.find(name);
  if (chosen == chosen_.end()) {
    Set(name, paths, source);
    return;
  }
  chosen->second.value = paths;
  chosen->second.source = absl::StrCat(chosen->second.source, ", ", source);
}

std::optional<std::string> Variables::Get(const std::string& name) const {
  const auto chosen = chosen_.find(name);
  if (chosen != chosen_.end()) return chosen->second.value;
  return user_.get(name);
}

std::vector<std::string> Variables::UserNames(absl::string_view prefix) const {
  std::vector<std::string> names = user_.names();
  std::erase_if(names, [&](const std::string& name) {
    return !absl::StartsWith(name, prefix);
  });
  std::sort(names.begin(), names.end());
  return names;
}

void Variables::Note(const std::string& text) {
  if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) {
    notes_.push_back(text);
  }
}

std::vector<Variable> Variables::list() const {
  std::vector<Variable> variables;
  for (const auto& [name, variable] : chosen_) variables.push_back(variable);
  return variables;
}

std::vector<Variable> Variables::changes() const {
  std::vector<Variable> variables = list();
  std::erase_if(variables, [](const Variable& variable) {
    return variable.source == kEnvironment;
  });
  return variables;
}

std::vector<std::pair<std::string, std::string>> PairsOf(
    const std::vector<Variable>& variables) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const Variable& variable : variables) {
    pairs.emplace_back(variable.name, variable.value);
  }
  return pairs;
}

}  // namespace hvdlite::launch
