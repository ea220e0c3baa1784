// FlagsFile: the file of --config-file, with lines "FLAG = VALUE" of TOML.
#pragma once

#include <CLI/CLI.hpp>
#include <set>
#include <string>
#include <vector>

#include "tools/hvdliterun/plan/variables.h"

namespace hvdlite::launch {

// The flag of `app` that is most similar to `word`, both with dashes; "" if
// none is similar.
std::string NearestFlag(const CLI::App& app, const std::string& word);

// Reads the file for CLI11 during parsing. The command line takes precedence.
class FlagsFile : public CLI::ConfigTOML {
 public:
  // `app` has the flag --config-file and must outlive this object.
  explicit FlagsFile(const CLI::App& app) : app_(app) {}

  // Returns the flags of the file, without those that are on the command line
  // or that a flag of the command line excludes. Throws CLI::ConfigError, which
  // names file and key.
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

  // An error message of CLI11; with the file's name if the flag is in the file.
  std::string WhatIsWrong(const std::string& message) const;

  // Sorts the settings, because the first setting of a variable counts: the
  // command line before the file, and --set before the settings' own flags.
  // Adds the file's name to the sources of its settings.
  void Order(std::vector<Variable>& settings) const;

 private:
  std::string Path() const { return app_.get_config_ptr()->as<std::string>(); }
  const CLI::Option& OptionOf(const CLI::ConfigItem& item) const;

  const CLI::App& app_;
  mutable std::set<std::string> taken_;  // flags that are set by the file
};

}  // namespace hvdlite::launch
