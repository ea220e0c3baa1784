// The known MPI launchers, and the command with which each places ranks on
// hosts.
//
// Launchers only place ranks on hosts. Binding, memory policy and environment
// differ between launchers. Therefore hvdliterun itself (exec_rank.h) sets them
// on the node, in the same way under all launchers.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/environment.h"
#include "support/libraries.h"
#include "tools/hvdliterun/plan/allocation.h"

namespace hvdlite::launch {

enum class Launcher {
  kOpenMpi,  // mpirun of Open MPI
  kMpich,    // mpiexec of MPICH, Intel MPI, MVAPICH (Hydra)
  kSrun,     // SLURM's, with the machine's default MPI plugin
  kPjsub,    // Fujitsu's mpiexec inside a job of pjsub
};

struct LauncherProgram {
  Launcher launcher = Launcher::kOpenMpi;
  std::string program;       // "mpirun", "mpiexec", "srun"
  std::string version = {};  // printed by --version; "" if not queried
};

struct LaunchOptions {
  LauncherProgram launcher = {};
  std::vector<Host> hosts = {};  // slots: the ranks of each
  bool local = false;            // on this host, because no hosts are named
  // The launcher takes the slots from the batch system's job.
  bool slots_of_batch_system = false;
  bool oversubscribe = false;
  bool allow_root = false;                   // Open MPI: run as root
  bool in_place = false;                     // Open MPI: survive lost ranks
  std::vector<std::string> interfaces = {};  // of the networks; empty: any
  std::vector<std::string> ssh = {};         // arguments for ssh
  // Variables that the launcher gets in addition to this process's environment.
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::string intel_pin = {};               // Hydra: I_MPI_PIN, or empty
  std::vector<std::string> exported = {};   // Open MPI: names of variables
  std::vector<std::string> arguments = {};  // of the user for the launcher
};

// A launcher is a row of the table in launcher.cc.
struct LauncherKind {
  Launcher launcher;
  std::string name;     // value of --launcher
  std::string program;  // its usual name
  // `PROGRAM --version` prints one of these; empty: the version is not queried.
  std::vector<std::string> version_words;
  // Beginnings of the names of the MPI libraries whose ranks it starts.
  std::vector<std::string> libraries = {};
  // The command, without the user's arguments for the launcher.
  std::vector<std::string> (*command)(const LaunchOptions& options,
                                      const std::string& ranks);
  // The batch system whose jobs have only this launcher; kNone: there is none.
  BatchSystem only_one_of = BatchSystem::kNone;
  bool binds_ranks = false;    // as the job requests; hvdliterun cannot unbind
  bool passes_bytes = false;   // passes on output at once, not by line
  bool refuses_root = false;   // unless a flag allows it
  bool starts_by_ssh = false;  // if no batch system starts the ranks
  // Waits for the other ranks if a rank fails before MPI_Init.
  bool goes_on_after_failures = false;
  bool ends_of_sigusr2 = false;  // SIGUSR2 terminates it and is not passed on
  bool tells_on_output = false;  // reports ended ranks on standard output
  size_t max_interfaces = 0;     // number of networks that it accepts
};

const LauncherKind& KindOf(Launcher launcher);

// "auto", and the names of all launchers.
std::vector<std::string> LauncherChoices();

// Parses one of these names, except auto.
absl::StatusOr<Launcher> ParseLauncher(absl::string_view text);

// The launcher of the MPI that a program links; nullopt if it links none.
std::optional<Launcher> LauncherOfLibraries(
    const std::vector<support::Library>& libraries);

// The launcher's program, under its usual name.
LauncherProgram ProgramOf(Launcher launcher);

// The major version of Open MPI (its flags changed with 5); nullopt if the
// version was not queried.
std::optional<int> MajorVersion(const LauncherProgram& launcher);

// The launcher's version on one line: "mpirun (Open MPI) 4.1.4", "HYDRA
// Version: 4.0.2". Empty if it was not queried.
std::string VersionLine(const LauncherProgram& launcher);

// Chooses the launcher. `choice` "auto" means:
//  - in Fujitsu's jobs Fujitsu's mpiexec;
//  - in a SLURM job without Open MPI's mpirun (which starts its daemons through
//    SLURM) srun;
//  - else mpirun or mpiexec, of the kind `of_program` if there are several.
// A named kind is used, unless the installed programs are known to be of
// another kind. `version_of` returns the output of `PROGRAM --version`, or an
// error if there is no such program.
absl::StatusOr<LauncherProgram> ChooseLauncher(
    const std::string& choice, BatchSystem system,
    const std::function<
        absl::StatusOr<std::string>(const std::string& program)>& version_of,
    std::optional<Launcher> of_program = std::nullopt);

// The launcher's command, without the program.
std::vector<std::string> LauncherCommand(const LaunchOptions& options);

// Variables that ranks need and that Open MPI does not pass to other hosts
// itself: search paths, and those of hvdlite, OpenMP, BLAS, UCX, ...
std::vector<std::string> VariablesToExport(
    const base::Environment& environment);

}  // namespace hvdlite::launch
