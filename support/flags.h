// Flags of command lines (CLI11): readable checks of numbers, and values with
// their own parsers.
#pragma once

#include <CLI/CLI.hpp>
#include <iostream>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace hvdlite::support {

namespace internal {

inline CLI::Validator NumberCheck(const std::string& type,
                                  const std::string& must,
                                  bool (*holds)(double)) {
  return {[must, holds](const std::string& text) -> std::string {
            double number = 0;
            if (!CLI::detail::lexical_cast(text, number)) {
              return "must be a number, but is " + text;
            }
            return holds(number) ? "" : must + ", but is " + text;
          },
          type};
}

}  // namespace internal

// CLI11's checks would print the largest possible number.
inline CLI::Validator Positive() {
  return internal::NumberCheck("POSITIVE", "must be above 0",
                               [](double number) { return number > 0; });
}

inline CLI::Validator NotNegative() {
  return internal::NumberCheck("NONNEGATIVE", "must not be below 0",
                               [](double number) { return number >= 0; });
}

// Adds a number that must be above 0, or not below 0. --help shows its default.
template <typename Number>
CLI::Option* AddPositive(CLI::App& app, const std::string& name, Number& target,
                         const std::string& help) {
  return app.add_option(name, target, help)
      ->check(Positive())
      ->capture_default_str();
}

template <typename Number>
CLI::Option* AddNotNegative(CLI::App& app, const std::string& name,
                            Number& target, const std::string& help) {
  return app.add_option(name, target, help)
      ->check(NotNegative())
      ->capture_default_str();
}

// Makes `option` the former spelling of the flag `name`: it works, with a
// warning on stderr, and --help does not list it.
inline void MarkFormerSpelling(CLI::Option* option, const std::string& name) {
  const std::string former = option->get_name();  // empty once it is hidden
  option->group("")->each([former, name](const std::string&) {
    std::cerr << "warning: " << former << " is an old spelling; use " << name
              << std::endl;
  });
}

// `parse` converts the text to an absl::StatusOr; its error becomes the error
// of the command line. `target` must outlive the parsing.
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

}  // namespace hvdlite::support
