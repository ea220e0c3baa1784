// Options of a command line (CLI11) whose values have parsers of their own.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace hvdlite::launch {

// `parse` makes an absl::StatusOr of the text, whose error the command line
// fails with. `target` outlives the parsing.
template <typename Target, typename Parse>
CLI::Option* AddParsed(CLI::App& app, const std::string& name, Target& target,
                       Parse parse, const std::string& help = "") {
  const std::string long_name = name.substr(name.find(',') + 1);
  const auto take = [&target, parse, long_name](const std::string& text) {
    auto value = parse(text);
    if (!value.ok()) {
      throw CLI::ValidationError(long_name,
                                 std::string(value.status().message()));
    }
    target = *std::move(value);
  };
  return app.add_option_function<std::string>(name, take, help)->type_name("");
}

}  // namespace hvdlite::launch
