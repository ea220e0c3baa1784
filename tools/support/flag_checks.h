// Checks of numbers in flags of command lines (CLI11), with messages for
// people.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace hvdlite::base {

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

// Unlike CLI11's, they do not write the largest number there is.
inline CLI::Validator Positive() {
  return internal::NumberCheck("POSITIVE", "must be above 0",
                               [](double number) { return number > 0; });
}

inline CLI::Validator NotNegative() {
  return internal::NumberCheck("NONNEGATIVE", "must not be below 0",
                               [](double number) { return number >= 0; });
}

}  // namespace hvdlite::base
