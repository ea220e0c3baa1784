#include "tools/support/system_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace hvdlite::doctor {

std::optional<std::string> SystemFiles::Text(const std::string& path) const {
  std::ifstream file(root_ + path);
  if (!file) return std::nullopt;
  std::string text{std::istreambuf_iterator<char>(file),
                   std::istreambuf_iterator<char>()};
  // Some files open, and fail when they are read.
  if (file.bad()) return std::nullopt;
  return text;
}

std::optional<std::string> SystemFiles::Line(const std::string& path) const {
  const std::optional<std::string> text = Text(path);
  if (!text.has_value()) return std::nullopt;
  return std::string(
      absl::StripAsciiWhitespace(text->substr(0, text->find('\n'))));
}

std::optional<double> SystemFiles::Number(const std::string& path) const {
  const std::optional<std::string> line = Line(path);
  double number = 0;
  if (!line.has_value() || !absl::SimpleAtod(*line, &number)) {
    return std::nullopt;
  }
  return number;
}

std::vector<std::string> SystemFiles::Names(const std::string& folder) const {
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator entry(root_ + folder, error), end;
       !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string ValueOf(const std::string& text, const std::string& key) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (absl::StripAsciiWhitespace(parts.first) == key) {
      return std::string(absl::StripAsciiWhitespace(parts.second));
    }
  }
  return "";
}

std::string BracketedChoice(const std::string& text) {
  const size_t open = text.find('[');
  const size_t close = text.find(']', open);
  if (open == std::string::npos || close == std::string::npos) return text;
  return text.substr(open + 1, close - open - 1);
}

}  // namespace hvdlite::doctor
