// The command line of a trainer.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace hvdlite::trainers {

// Why a program ends before it has begun: --help, or an error that names the
// flag and what it accepts.
struct EarlyEnd {
  std::string text;
  int exit_code = 0;
};

// Flags to run with, or, if there are none, `end`.
template <typename Flags>
struct CommandLine {
  std::optional<Flags> flags;
  EarlyEnd end;
};

// For the end of --help.
inline constexpr char kExitCodes[] =
    "Exit codes: 0 done, 2 a flag or an input file is wrong, 1 anything else,\n"
    "also an input file that turns out to be damaged while it is trained on.";

// Parses the arguments with `app`, whose name is the program's; nullopt: all is
// well. Of a flag with one value that is given again, the last one counts.
// `check` looks at the flags together and throws InputError for what does
// not fit.
std::optional<EarlyEnd> ParseArguments(CLI::App& app, int argc,
                                       const char* const* argv,
                                       const std::function<void()>& check);

}  // namespace hvdlite::trainers
