// FlagsFile: what --config-file names, lines "FLAG = VALUE" of TOML.
#pragma once

#include <CLI/CLI.hpp>
#include <set>
#include <string>
#include <vector>

#include "tools/hvdliterun/plan/variables.h"

namespace hvdlite::launch {

// The flag of `app` nearest to `word`, both with dashes; "" if none is near.
std::string NearestFlag(const CLI::App& app, const std::string& word);

// Reads the file for CLI11 while it parses. The command line wins.
class FlagsFile : public CLI::ConfigTOML {
 public:
  // `app`, which has the flag, outlives it.
  explicit FlagsFile(const CLI::App& app) : app_(app) {}

  // What the command line does not give, nor another flag that excludes it.
  // Throws CLI::ConfigError, which names file and key.
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

  // An error of CLI11's, with the file if the flag is of it.
  std::string WhatIsWrong(const std::string& message) const;

  // The first setting of a variable stays: the command line's come before the
  // file's, whose source names it, and --set before the knobs' own flags.
  void Order(std::vector<Variable>& settings) const;

 private:
  std::string Path() const { return app_.get_config_ptr()->as<std::string>(); }
  const CLI::Option& OptionOf(const CLI::ConfigItem& item) const;

  const CLI::App& app_;
  mutable std::set<std::string> taken_;  // flags that the file decides about
};

}  // namespace hvdlite::launch
