#include "base/environment.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/descriptor.h"
#include "base/fnv1a.h"

extern char** environ;

namespace hvdlite::base {
namespace {

size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row.back();
}

// Inode of a namespace: equal for all processes in it; 0 if unknown.
uint64_t Namespace(const char* kind) {
  struct stat space = {};
  return stat(absl::StrCat("/proc/self/ns/", kind).c_str(), &space) == 0
             ? space.st_ino
             : 0;
}

}  // namespace

Environment ProcessEnvironment() {
  return Environment{
      .get = [](absl::string_view name) -> std::optional<std::string> {
        const char* value = std::getenv(std::string(name).c_str());
        if (value == nullptr) return std::nullopt;
        return std::string(value);
      },
      .names =
          [] {
            std::vector<std::string> names;
            for (char** entry = environ; entry != nullptr && *entry != nullptr;
                 ++entry) {
              const absl::string_view text(*entry);
              names.emplace_back(text.substr(0, text.find('=')));
            }
            return names;
          },
  };
}

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0) return "localhost";
  return name;
}

HostIdentity IdentityOfHost() {
  const std::string machine =
      ReadFile("/proc/sys/kernel/random/boot_id").value_or(HostName());
  return {.machine = Fnv1a(machine),
          .host = Fnv1a(absl::StrCat(machine, " ", Namespace("pid"), " ",
                                     Namespace("ipc")))};
}

std::string AbsolutePath(const std::string& path) {
  if (path.empty()) return path;
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.string();
}

void SetDefaultVariable(const std::string& name, const std::string& value) {
  setenv(name.c_str(), value.c_str(), /*overwrite=*/0);
}

Environment FakeEnvironment(
    std::vector<std::pair<std::string, std::string>> variables) {
  return Environment{
      .get = [variables](absl::string_view name) -> std::optional<std::string> {
        for (const auto& [key, value] : variables) {
          if (key == name) return value;
        }
        return std::nullopt;
      },
      .names =
          [variables] {
            std::vector<std::string> names;
            for (const auto& [key, value] : variables) names.push_back(key);
            return names;
          },
  };
}

std::vector<std::string> EnvironmentEntries(
    const Environment& environment,
    const std::vector<std::pair<std::string, std::string>>& changes) {
  std::vector<std::string> entries;
  for (const std::string& name : environment.names()) {
    const bool changed =
        std::any_of(changes.begin(), changes.end(),
                    [&](const auto& change) { return change.first == name; });
    if (changed) continue;
    entries.push_back(
        absl::StrCat(name, "=", environment.get(name).value_or("")));
  }
  for (const auto& [name, value] : changes) {
    entries.push_back(absl::StrCat(name, "=", value));
  }
  return entries;
}

absl::StatusOr<int64_t> ParseInteger(absl::string_view text, int64_t minimum,
                                     int64_t maximum) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < minimum || value > maximum) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "' is not a whole number from ", minimum, " to ", maximum));
  }
  return value;
}

absl::StatusOr<int64_t> ParseBytes(absl::string_view text) {
  const absl::Status error = absl::InvalidArgumentError(absl::StrCat(
      "'", text,
      "' is not a size; use a number of bytes, or a number with K, M or G "
      "(powers of 1024), such as 64M"));
  std::string number = absl::AsciiStrToLower(text);
  for (const char* suffix : {"ib", "b"}) {
    if (absl::EndsWith(number, suffix)) {
      number.resize(number.size() - absl::string_view(suffix).size());
      break;
    }
  }
  double unit = 1;
  if (!number.empty()) {
    const size_t power = absl::string_view("kmg").find(number.back());
    if (power != absl::string_view::npos) {
      unit = std::pow(1024.0, static_cast<double>(power + 1));
      number.pop_back();
    }
  }
  double value = 0;
  if (number.find_first_not_of("0123456789.") != std::string::npos ||
      !absl::SimpleAtod(number, &value) || !std::isfinite(value) || value < 0 ||
      value * unit > 9e15) {
    return error;
  }
  return static_cast<int64_t>(value * unit);
}

absl::StatusOr<double> ParseSeconds(absl::string_view text) {
  double value = 0;
  if (!absl::SimpleAtod(text, &value) || !std::isfinite(value) || value < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "' is not a number of seconds, such as 30 or 0.5"));
  }
  return value;
}

absl::StatusOr<bool> ParseBool(absl::string_view text) {
  bool value = false;
  const std::string lower = absl::AsciiStrToLower(text);
  if (lower == "on") return true;
  if (lower == "off") return false;
  if (!absl::SimpleAtob(lower, &value)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", text, "' is not a switch; use 1, 0, true, false, on or off"));
  }
  return value;
}

std::string NearestName(absl::string_view name,
                        const std::vector<std::string>& known) {
  std::string nearest;
  size_t smallest = name.size() / 3 + 1;
  for (const std::string& candidate : known) {
    const size_t distance = EditDistance(name, candidate);
    if (distance < smallest) {
      smallest = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace hvdlite::base
