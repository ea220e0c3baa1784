// Variables: the environment that ranks get on top of their launcher's, each
// value with its source. What the user has set himself wins.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/environment.h"

namespace hvdlite::launch {

struct Variable {
  std::string name;
  std::string value;
  std::string source;  // "--threads", "--preset a64fx-numa", "environment", ...

  bool operator==(const Variable&) const = default;
};

// Precedence: Set (a flag) > the user's environment > the first Offer.
//
//   Variables variables(base::ProcessEnvironment());
//   variables.Set("OMP_NUM_THREADS", "4", "--threads");
//   variables.Offer("OMP_PROC_BIND", "close", "default");
class Variables {
 public:
  explicit Variables(base::Environment user);

  // What the user asked for on the command line. The first one stays.
  void Set(const std::string& name, const std::string& value,
           const std::string& source);
  // What is good as long as nobody says otherwise. Whether it was taken.
  bool Offer(const std::string& name, const std::string& value,
             const std::string& source);
  // Adds to a list of paths, behind what the user has there by flag or
  // environment.
  void AppendPath(const std::string& name, const std::string& path,
                  const std::string& source);
  // The value that ranks will see.
  std::optional<std::string> Get(const std::string& name) const;
  bool Has(const std::string& name) const { return Get(name).has_value(); }
  // Names that the user's environment sets, in order.
  std::vector<std::string> UserNames(absl::string_view prefix) const;

  void Note(const std::string& text);

  // By name: those that were set or offered, with the value that won.
  std::vector<Variable> list() const;
  // Those of list() that the environment does not have already.
  std::vector<Variable> changes() const;
  // What was kept or replaced, and the like; sentences.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  base::Environment user_;
  std::map<std::string, Variable> chosen_;
  std::vector<std::string> notes_;
};

// Names and values, as base::EnvironmentEntries() takes changes.
std::vector<std::pair<std::string, std::string>> PairsOf(
    const std::vector<Variable>& variables);

}  // namespace hvdlite::launch
