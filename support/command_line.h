// The command line of a trainer; what those of all programs have.
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

// Adds --version, which prints the project's: "train_mnist (hvdlite) 0.1.0".
void AddVersion(CLI::App& app);

// Why a program ends before it has begun: --help, or an error that names the
// flag and what it accepts.
struct EarlyEnd {
  // Prints `text`, where it belongs; returns the exit code.
  int Tell(std::ostream& out = std::cout, std::ostream& err = std::cerr) const {
    (exit_code == 0 ? out : err) << text;
    return exit_code;
  }

  std::string text;
  int exit_code = 0;
};

// Columns of a terminal, as people leave it.
inline constexpr size_t kHelpWidth = 80;

// --help of `app`, or of its subcommand that was called, in lines no wider.
std::string HelpOf(const CLI::App& app);

// What `app.parse()` threw: help, the version, or, with exit code 2, what is
// wrong, and which flag or command may have been meant.
EarlyEnd EndOfParsing(const CLI::App& app, const CLI::ParseError& error);

// Flags to run with, or, if there are none, `end`.
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

// Parses the command line of `program` into the flags that `add` declares. Of a
// flag with one value that is given again, the last one counts. `check` looks
// at the flags together and throws InputError for what does not fit.
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
