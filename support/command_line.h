// Command lines of trainers, and the parts that all programs share.
#pragma once

#include <cstddef>
#include <functional>
#include <iostream>
#include <optional>
#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace hvdlite::support {

// Adds --version, which prints the version, such as "train_mnist (hvdlite)
// 0.1.0".
void AddVersion(CLI::App& app);

// Text and exit code of a program that ends before its work: --help, or an
// error that names the flag and what it accepts.
struct EarlyEnd {
  // Prints `text` to the right stream; returns the exit code.
  int Tell(std::ostream& out = std::cout, std::ostream& err = std::cerr) const {
    (exit_code == 0 ? out : err) << text;
    return exit_code;
  }

  std::string text;
  int exit_code = 0;
};

// Usual width of a terminal, in characters.
inline constexpr size_t kHelpWidth = 80;

// --help of `app`, or of the subcommand that was given, wrapped to kHelpWidth.
std::string HelpOf(const CLI::App& app);

// Converts an exception of `app.parse()`: help, version, or exit code 2 with
// the mistake and the flag or command that may have been meant.
EarlyEnd EndOfParsing(const CLI::App& app, const CLI::ParseError& error);

// Flags to run with. If there are none, the program must end with `end`.
template <typename Flags>
struct CommandLine {
  std::optional<Flags> flags;
  EarlyEnd end;
};

namespace internal {

std::optional<EarlyEnd> ParseArguments(
    const std::string& program, const std::string& description, int argc,
    const char* const* argv, const std::function<void(CLI::App&)>& add,
    const std::function<void()>& check);

}  // namespace internal

// Parses the command line of `program` into the flags that `add` declares. If a
// flag with one value is repeated, the last one counts. `check` validates the
// flags together and throws InputError.
template <typename Flags, typename Add, typename Check>
CommandLine<Flags> ParseFlags(const std::string& program,
                              const std::string& description, int argc,
                              const char* const* argv, Add add, Check check) {
  Flags flags;
  const std::optional<EarlyEnd> end = internal::ParseArguments(
      program, description, argc, argv, [&](CLI::App& app) { add(app, flags); },
      [&] { check(flags); });
  if (end.has_value()) return {.flags = std::nullopt, .end = *end};
  return {.flags = flags, .end = {}};
}

}  // namespace hvdlite::support
