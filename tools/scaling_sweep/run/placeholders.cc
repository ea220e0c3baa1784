#include "tools/scaling_sweep/run/placeholders.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/environment.h"

namespace hvdlite::scaling_sweep {
namespace {

const std::vector<std::string>& KnownNames() {
  static const auto* const names = new std::vector<std::string>{
      "report", "trace",          "ranks",   "nodes",
      "batch",  "ranks_per_node", "threads", "spec_dir"};
  return *names;
}

// "{name}" and nothing else that has braces, as JSON in an argument would.
std::vector<std::string> NamesIn(const std::string& word) {
  std::vector<std::string> names;
  for (size_t at = word.find('{'); at != std::string::npos;
       at = word.find('{', at + 1)) {
    const size_t end =
        word.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", at + 1);
    if (end == std::string::npos || word[end] != '}' || end == at + 1) continue;
    names.push_back(word.substr(at + 1, end - at - 1));
  }
  return names;
}

}  // namespace

absl::Status CheckPlaceholderNames(const std::string& where,
                                   const std::string& text) {
  const std::vector<std::string>& known = KnownNames();
  for (const std::string& name : NamesIn(text)) {
    if (std::count(known.begin(), known.end(), name) > 0) continue;
    const std::string nearest = base::NearestName(name, known);
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": {", name, "} is no placeholder; ",
        nearest.empty()
            ? absl::StrCat("there are {", absl::StrJoin(known, "}, {"), "}")
            : absl::StrCat("did you mean {", nearest, "}?")));
  }
  return absl::OkStatus();
}

std::string FillIn(const std::string& word,
                   const std::map<std::string, std::string>& values) {
  std::vector<std::pair<std::string, std::string>> replacements;
  for (const auto& [name, value] : values) {
    replacements.emplace_back(absl::StrCat("{", name, "}"), value);
  }
  return absl::StrReplaceAll(word, replacements);
}

}  // namespace hvdlite::scaling_sweep
