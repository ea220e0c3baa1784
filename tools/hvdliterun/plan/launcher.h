// The MPI launchers that are known, and how each is told to put ranks on hosts.
//
// Launchers place ranks on hosts, and nothing else: what binding, memory policy
// and environment mean differs between them, so that is done on the node by
// hvdliterun itself (exec_rank.h), alike under all of them.
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
  std::string version = {};  // what it says of itself; "" where nobody asked
};

struct LaunchOptions {
  LauncherProgram launcher = {};
  std::vector<Host> hosts = {};  // slots: the ranks of each
  bool local = false;            // on this host alone, which nobody has named
  // The launcher counts slots by the batch system's job.
  bool slots_of_batch_system = false;
  bool oversubscribe = false;
  bool allow_root = false;                   // Open MPI: run as root
  bool in_place = false;                     // Open MPI: outlive lost ranks
  std::vector<std::string> interfaces = {};  // of networks; empty: any
  std::vector<std::string> ssh = {};         // words for ssh
  // What the launcher itself gets on top of this process's environment.
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::string intel_pin = {};               // Hydra: I_MPI_PIN, or empty
  std::vector<std::string> exported = {};   // Open MPI: variables' names
  std::vector<std::string> arguments = {};  // the user's, for the launcher
};

// A launcher is a row of the table in launcher.cc.
struct LauncherKind {
  Launcher launcher;
  std::string name;     // that --launcher takes
  std::string program;  // its usual name
  // What `PROGRAM --version` prints holds one of these; none: nobody asks.
  std::vector<std::string> version_words;
  // Beginnings of the names of the libraries whose ranks it starts.
  std::vector<std::string> libraries = {};
  // The command, up to where the user's words for the launcher follow.
  std::vector<std::string> (*command)(const LaunchOptions& options,
                                      const std::string& ranks);
  // Whose jobs have no other; kNone: of no batch system.
  BatchSystem only_one_of = BatchSystem::kNone;
  bool binds_ranks = false;    // as the job was asked for; nothing unbinds them
  bool passes_bytes = false;   // of ranks' output, without waiting for a line
  bool refuses_root = false;   // unless it is told
  bool starts_by_ssh = false;  // where no batch system does it
  // Waits for the others when a rank that has not called MPI_Init fails.
  bool goes_on_after_failures = false;
  bool ends_of_sigusr2 = false;  // in place of passing it on
  bool tells_on_output = false;  // of ranks that have ended, among theirs
  size_t max_interfaces = 0;     // of networks that it can be told of
};

const LauncherKind& KindOf(Launcher launcher);

// "auto", and the names of all there are.
std::vector<std::string> LauncherChoices();

// One of these names, but auto.
absl::StatusOr<Launcher> ParseLauncher(absl::string_view text);

// That of the MPI which a program links; none where it links none.
std::optional<Launcher> LauncherOfLibraries(
    const std::vector<support::Library>& libraries);

// By its usual name.
LauncherProgram ProgramOf(Launcher launcher);

// Of Open MPI's version, whose flags changed with 5; none where nobody asked.
std::optional<int> MajorVersion(const LauncherProgram& launcher);

// "mpirun (Open MPI) 4.1.4", "HYDRA Version: 4.0.2": what it says of itself, in
// a line; empty where nobody asked.
std::string VersionLine(const LauncherProgram& launcher);

// What auto means: Fujitsu's mpiexec in its jobs; else mpirun (or mpiexec), of
// the kind `of_program` where there are several, and srun where a SLURM job has
// no mpirun of Open MPI, which asks SLURM for daemons itself. A kind that is
// named is taken, unless what there is is known to be of another. `version_of`
// returns what `PROGRAM --version` prints, or an error if there is no such
// program.
absl::StatusOr<LauncherProgram> ChooseLauncher(
    const std::string& choice, BatchSystem system,
    const std::function<
        absl::StatusOr<std::string>(const std::string& program)>& version_of,
    std::optional<Launcher> of_program = std::nullopt);

// The launcher's command, up to where the program follows.
std::vector<std::string> LauncherCommand(const LaunchOptions& options);

// Variables that matter to ranks and do not reach other hosts by themselves
// under Open MPI: search paths, and those of hvdlite, OpenMP, BLAS, UCX, ...
std::vector<std::string> VariablesToExport(
    const base::Environment& environment);

}  // namespace hvdlite::launch
