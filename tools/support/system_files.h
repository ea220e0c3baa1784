// SystemFiles: what the kernel tells in /proc and /sys.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace hvdlite::doctor {

// Reads below a root: "" is the machine; tests write trees of their own.
class SystemFiles {
 public:
  explicit SystemFiles(std::string root = "") : root_(std::move(root)) {}

  // The whole file; nullopt if it cannot be read.
  std::optional<std::string> Text(const std::string& path) const;
  // The first line, without white space around it; nullopt as above.
  std::optional<std::string> Line(const std::string& path) const;
  // The first line as a number; nullopt if it is none.
  std::optional<double> Number(const std::string& path) const;
  // Names in a folder, sorted; empty if it cannot be read.
  std::vector<std::string> Names(const std::string& folder) const;

 private:
  std::string root_;
};

// The value of the first line "key : value" of a text of /proc; empty: none.
std::string ValueOf(const std::string& text, const std::string& key);

// The choice in brackets of "always [madvise] never"; the whole text if none.
std::string BracketedChoice(const std::string& text);

}  // namespace hvdlite::doctor
