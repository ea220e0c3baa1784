// Variables: the variables that ranks get in addition to their launcher's
// environment, each with its source. The user's own settings take precedence.
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

  // Sets a variable from the command line. The first value stays.
  void Set(const std::string& name, const std::string& value,
           const std::string& source);
  // Sets a default, unless the variable is set already. Returns whether the
  // default is used.
  bool Offer(const std::string& name, const std::string& value,
             const std::string& source);
  // Appends to a list of paths, after the user's paths from flags or
  // environment.
  void AppendPath(const std::string& name, const std::string& path,
                  const std::string& source);
  // The value that ranks get.
  std::optional<std::string> Get(const std::string& name) const;
  bool Has(const std::string& name) const { return Get(name).has_value(); }
  // Names in the user's environment with this prefix, in order.
  std::vector<std::string> UserNames(absl::string_view prefix) const;

  void Note(const std::string& text);

  // Variables that were set or offered, with their final values, sorted by
  // name.
  std::vector<Variable> list() const;
  // Those of list() that are not in the environment already.
  std::vector<Variable> changes() const;
  // Sentences about values that were kept or replaced, and similar.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  base::Environment user_;
  std::map<std::string, Variable> chosen_;
  std::vector<std::string> notes_;
};

// Names and values, as base::EnvironmentEntries() takes them.
std::vector<std::pair<std::string, std::string>> PairsOf(
    const std::vector<Variable>& variables);

}  // namespace hvdlite::launch
