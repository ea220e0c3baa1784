// scaling_sweep measures how a training scales, whether it has become slower,
// and which settings are fastest.

#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/scaling_sweep/commands.h"
#include "tools/scaling_sweep/flags.h"

namespace hvdlite::scaling_sweep {
namespace {

absl::StatusOr<int> Dispatch(const Flags& flags) {
  if (flags.command == "report") return ReportCommand(flags, std::cout);
  if (flags.command == "compare") return CompareCommand(flags, std::cout);
  if (flags.command == "tune") return TuneCommand(flags, std::cout);
  return RunCommand(flags, std::cout);
}

bool IsUserError(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsNotFound(status) ||
         absl::IsFailedPrecondition(status);
}

int Main(const std::vector<std::string>& arguments) {
  const support::CommandLine<Flags> line = ParseCommandLine(arguments);
  if (!line.flags) return line.end.Tell();
  const absl::StatusOr<int> code = Dispatch(*line.flags);
  if (code.ok()) {
    std::cout.flush();
    if (std::cout) return *code;
    std::cerr << "scaling_sweep: cannot write to standard output\n";
    return 1;
  }
  std::cerr << "scaling_sweep: " << code.status().message() << "\n";
  return IsUserError(code.status()) ? 2 : 1;
}

}  // namespace
}  // namespace hvdlite::scaling_sweep

int main(int argc, char** argv) {
  try {
    return hvdlite::scaling_sweep::Main({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << "scaling_sweep: " << error.what() << "\n";
    return 1;
  }
}
