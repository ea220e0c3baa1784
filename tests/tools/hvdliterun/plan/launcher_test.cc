#include "tools/hvdliterun/plan/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/testing/golden.h"

namespace hvdlite::launch {
namespace {

using ::testing::ElementsAre;

const LauncherProgram kLaunchers[] = {
    {Launcher::kOpenMpi, "mpirun", "mpirun (Open MPI) 4.1.4"},
    {Launcher::kOpenMpi, "mpirun", "mpirun (Open MPI) 5.0.7\n\nBug"},
    {Launcher::kMpich, "mpiexec"},
    {Launcher::kSrun, "srun"},
    {Launcher::kPjsub, "mpiexec"}};

// Options of jobs that each launcher must handle.
struct Asked {
  const char* what;
  LaunchOptions options;
};

std::vector<Asked> AllAsked() {
  const std::vector<Host> even = {{"n1", 2}, {"n2", 2}};
  const std::vector<Host> uneven = {{"n1", 2}, {"n2", 1}};
  const std::vector<Host> here = {{"localhost", 2}};
  return {
      {"equally many ranks", {.hosts = even}},
      {"variables and the user's arguments",
       {.hosts = uneven, .exported = {"PATH"}, .arguments = {"--extra"}}},
      {"oversubscription", {.hosts = uneven, .oversubscribe = true}},
      {"a batch job", {.hosts = even, .slots_of_batch_system = true}},
      {"a batch job, oversubscribed",
       {.hosts = even, .slots_of_batch_system = true, .oversubscribe = true}},
      {"this host, root, a network",
       {.hosts = here,
        .local = true,
        .allow_root = true,
        .interfaces = {"lo"}}},
      {"networks and ssh",
       {.hosts = even, .interfaces = {"eth0", "ib0"}, .ssh = {"-p", "2222"}}},
      {"in place, Intel's binding off",
       {.hosts = here, .local = true, .in_place = true, .intel_pin = "0"}},
  };
}

TEST(LauncherCommandTest, EachLauncherGetsItsOwnFlags) {
  for (const LauncherProgram& launcher : kLaunchers) {
    std::map<std::string, std::string> asked_by_command;
    std::vector<std::string> commands;
    for (Asked asked : AllAsked()) {
      asked.options.launcher = launcher;
      const std::string command =
          absl::StrJoin(LauncherCommand(asked.options), "|");
      std::string& all_asked = asked_by_command[command];
      if (all_asked.empty()) commands.push_back(command);
      absl::StrAppend(&all_asked, all_asked.empty() ? "" : "; ", asked.what);
    }
    for (const std::string& command : commands) {
      testing::ExpectGolden(
          absl::StrCat(asked_by_command[command], ": ", command));
    }
  }
}

constexpr char kOpenMpi[] = "mpirun (Open MPI) 4.1.4\n";
constexpr char kHydra[] = "HYDRA build details:\n    Version: 4.0.2\n";

struct Choice {
  std::string launcher;  // kind and program, or the error
  std::string asked = "auto";
  std::map<std::string, std::string> versions = {};
  BatchSystem system = BatchSystem::kNone;
  std::optional<Launcher> of_program = {};
};

TEST(ChooseLauncherTest, UsesNameVersionBatchSystemAndMpiOfTheProgram) {
  const std::string srun = "slurm 23";
  const Choice choices[] = {
      {"openmpi mpirun", "auto", {{"mpirun", kOpenMpi}}},
      {"mpich mpiexec", "auto", {{"mpiexec", kHydra}}},
      {"mpich mpirun", "auto", {{"mpirun", "Intel(R) MPI Library"}}},
      {"openmpi mpirun",
       "auto",
       {{"mpirun", kOpenMpi}, {"srun", srun}},
       BatchSystem::kSlurm},
      {"srun srun",
       "auto",
       {{"mpiexec", kHydra}, {"srun", srun}},
       BatchSystem::kSlurm},
      {"srun srun", "auto", {{"srun", srun}}, BatchSystem::kSlurm},
      {"pjsub mpiexec", "auto", {}, BatchSystem::kPjm},
      // Of several launchers, that of the program's MPI is used.
      {"mpich mpiexec.hydra",
       "auto",
       {{"mpirun", kOpenMpi}, {"mpiexec.hydra", kHydra}},
       BatchSystem::kNone,
       Launcher::kMpich},
      {"openmpi orterun",
       "auto",
       {{"mpirun", kHydra}, {"orterun", "orterun (OpenRTE) 4.1"}},
       BatchSystem::kNone,
       Launcher::kOpenMpi},
      {"openmpi mpirun",
       "auto",
       {{"mpirun", kOpenMpi}},
       BatchSystem::kNone,
       Launcher::kMpich},
      // A named launcher is used.
      {"srun srun", "srun"},
      {"mpich mpiexec", "mpich"},
      {"mpich mpiexec.hydra",
       "mpich",
       {{"mpirun", kOpenMpi}, {"mpiexec.hydra", kHydra}}},
      {"mpich mpirun", "mpich", {{"mpirun", "unknown kind"}}},
      {"mpich mpiexec",
       "mpich",
       {{"mpirun", "unknown kind"}, {"mpiexec", kHydra}}},
      // The error names the last program of a wrong kind.
      {"--launcher mpich: orterun on this host is of the kind openmpi: load "
       "the module of the other MPI, or remove --launcher",
       "mpich",
       {{"mpirun", kOpenMpi}, {"orterun", "orterun (OpenRTE) 4.1"}}},
      {"--launcher openmpi: mpiexec.hydra on this host is of the kind mpich: "
       "load the module of the other MPI, or remove --launcher",
       "openmpi",
       {{"mpiexec", kHydra}, {"mpiexec.hydra", kHydra}}},
  };
  for (const Choice& choice : choices) {
    SCOPED_TRACE(absl::StrCat("row ", &choice - choices));
    const auto launcher = ChooseLauncher(
        choice.asked, choice.system,
        [&](const std::string& program) -> absl::StatusOr<std::string> {
          const auto version = choice.versions.find(program);
          if (version == choice.versions.end()) {
            return absl::NotFoundError(program);
          }
          return version->second;
        },
        choice.of_program);
    EXPECT_EQ(launcher.ok() ? absl::StrCat(KindOf(launcher->launcher).name, " ",
                                           launcher->program)
                            : std::string(launcher.status().message()),
              choice.launcher);
  }
}

TEST(ChooseLauncherTest, VersionIsOneLine) {
  EXPECT_EQ(VersionLine({Launcher::kOpenMpi, "mpirun", "mpirun 5.0.7\n\nBug"}),
            "mpirun 5.0.7");
  EXPECT_EQ(VersionLine({Launcher::kMpich, "mpiexec", kHydra}),
            "HYDRA Version: 4.0.2");
}

TEST(ChooseLauncherTest, LibrariesOfTheProgramIdentifyItsMpi) {
  EXPECT_EQ(LauncherOfLibraries({{"libc.so.6", "/c"}, {"libmpi.so.40", "/m"}}),
            Launcher::kOpenMpi);
  EXPECT_EQ(LauncherOfLibraries({{"libmpich.so.12", "/m"}}), Launcher::kMpich);
  EXPECT_EQ(LauncherOfLibraries({{"libmpi.so.12", "/m"}}), Launcher::kMpich);
  EXPECT_EQ(LauncherOfLibraries({{"libc.so.6", "/c"}}), std::nullopt);
}

TEST(ExportTest, ExportsOnlyVariablesThatRanksNeed) {
  EXPECT_THAT(VariablesToExport(base::FakeEnvironment({{"PATH", ""},
                                                       {"HOME", ""},
                                                       {"UCX_TLS", ""},
                                                       {"OMPI_MCA_pml", ""},
                                                       {"HVDLITE_X", ""},
                                                       {"PATHS", ""}})),
              ElementsAre("HVDLITE_X", "PATH", "UCX_TLS"));
}

}  // namespace
}  // namespace hvdlite::launch
