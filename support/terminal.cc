#include "support/terminal.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/environment.h"
#include "base/launcher_environment.h"
#include "support/core_use.h"
#include "support/machine.h"

namespace hvdlite::support {
namespace {

// Evaluated before main(): MPI_Init sets a launcher's variables also in a
// process without launcher.
const bool kIsLaunched = base::IsLaunched(base::ProcessEnvironment());

// Programs of Open MPI, PRRTE and Hydra. Daemons do not show output, except
// Hydra's proxy, the child of its mpiexec.
bool IsLauncher(const Ancestor& process) {
  constexpr std::array kNames = {"mpirun", "mpiexec", "orterun", "prterun",
                                 "hydra_pmi_proxy"};
  return std::any_of(kNames.begin(), kNames.end(), [&](const char* name) {
    return absl::StartsWith(process.name, name);
  });
}

bool IsTerminal(const std::string& stream) {
  return absl::StartsWith(stream, "/dev/pts/") ||
         absl::StartsWith(stream, "/dev/tty") || stream == "/dev/console";
}

// Options for logs (--output-filename, -outfile-pattern) and for line prefixes
// (--tag-output, --output tag, -prepend-rank, -l). Options of the program with
// such a name do no harm.
bool ChangesOutput(const std::string& argument) {
  return absl::StartsWith(argument, "-") &&
         (absl::StrContains(argument, "output") || argument == "-l" ||
          absl::StrContains(argument, "outfile") ||
          absl::StrContains(argument, "prepend"));
}

std::string OutputOf(const std::string& process) {
  std::error_code error;
  return std::filesystem::read_symlink(absl::StrCat("/proc/", process, "/fd/1"),
                                       error);
}

std::vector<Ancestor> AncestorsOfThis() {
  const SystemFiles files;
  std::vector<Ancestor> ancestors;
  for (pid_t process = getppid(); process > 0;) {
    const std::string id = absl::StrCat(process);
    const std::string directory = absl::StrCat("/proc/", id);
    ancestors.push_back(
        {.name = files.Line(directory + "/comm").value_or(""),
         .output = OutputOf(id),
         .arguments = absl::StrSplit(
             files.Text(directory + "/cmdline").value_or(""), '\0')});
    process = ParseProcessStat(files.Text(directory + "/stat").value_or(""))
                  .value_or(ProcessTime())
                  .parent;
  }
  return ancestors;
}

}  // namespace

bool LauncherShows(const std::string& output,
                   const std::vector<Ancestor>& ancestors) {
  // Scripts around the program share its output. If the program's output is
  // redirected ("| tee log"), the first process found is not a launcher.
  auto one = std::find_if(
      ancestors.begin(), ancestors.end(),
      [&](const Ancestor& process) { return process.output != output; });
  const Ancestor* launcher = nullptr;
  for (; one != ancestors.end() && IsLauncher(*one); ++one) launcher = &*one;
  return launcher != nullptr && IsTerminal(launcher->output) &&
         std::none_of(launcher->arguments.begin(), launcher->arguments.end(),
                      ChangesOutput);
}

std::string StreamIdentity(int descriptor) {
  struct stat status = {};
  if (fstat(descriptor, &status) != 0) return "";
  return absl::StrCat(status.st_dev, ":", status.st_ino);
}

bool OutputIsOnTerminal() {
  if (!kIsLaunched) return isatty(STDOUT_FILENO) != 0;
  const std::optional<std::string> told =
      base::ProcessEnvironment().get(base::kTerminalVariable);
  if (told.has_value() && *told == StreamIdentity(STDOUT_FILENO)) return true;
  return LauncherShows(OutputOf("self"), AncestorsOfThis());
}

}  // namespace hvdlite::support
