#include "tools/hvdliterun/plan/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/testing/golden.h"
#include "tools/hvdliterun/rank/exec_rank.h"

namespace hvdlite::launch {
namespace {

using ::testing::ElementsAre;

const LauncherProgram kLaunchers[] = {
    {Launcher::kOpenMpi, "mpirun", "mpirun (Open MPI) 4.1.4"},
    {Launcher::kOpenMpi, "mpirun", "mpirun (Open MPI) 5.0.7\n\nBug"},
    {Launcher::kMpich, "mpiexec"},
    {Launcher::kSrun, "srun"},
    {Launcher::kPjsub, "mpiexec"}};

// What a job may ask of each of them.
struct Asked {
  const char* what;
  LaunchOptions options;
};

std::vector<Asked> AllAsked() {
  const std::vector<Host> even = {{"n1", 2}, {"n2", 2}};
  const std::vector<Host> uneven = {{"n1", 2}, {"n2", 1}};
  const std::vector<Host> here = {{"localhost", 2}};
  return {
      {"equally many ranks", {.launcher = {}, .hosts = even}},
      {"variables and the user's words",
       {.launcher = {},
        .hosts = uneven,
        .exported = {"PATH"},
        .arguments = {"--extra"}}},
      {"oversubscription",
       {.launcher = {}, .hosts = uneven, .oversubscribe = true}},
      {"a batch job",
       {.launcher = {}, .hosts = even, .slots_of_batch_system = true}},
      {"a batch job, oversubscribed",
       {.launcher = {},
        .hosts = even,
        .slots_of_batch_system = true,
        .oversubscribe = true}},
      {"this host, root, a network",
       {.launcher = {},
        .hosts = here,
        .local = true,
        .allow_root = true,
        .interfaces = {"lo"}}},
      {"networks and ssh",
       {.launcher = {},
        .hosts = even,
        .interfaces = {"eth0", "ib0"},
        .ssh = {"-p", "2222"}}},
      {"in place, no binding of Intel's",
       {.launcher = {},
        .hosts = here,
        .local = true,
        .in_place = true,
        .intel_pin = "0"}},
  };
}

TEST(LauncherCommandTest, EachLauncherIsToldInItsOwnWords) {
  for (const LauncherProgram& launcher : kLaunchers) {
    for (Asked asked : AllAsked()) {
      asked.options.launcher = launcher;
      const std::vector<std::string> command = LauncherCommand(asked.options);
      EXPECT_EQ(command.front(), launcher.program);
      std::string text =
          absl::StrCat(asked.what, ": ", absl::StrJoin(command, "|"));
      for (const auto& [name, value] : LauncherVariables(asked.options)) {
        absl::StrAppend(&text, "\n", name, "=", value);
      }
      testing::ExpectGolden(text);
    }
  }
}

absl::StatusOr<LauncherProgram> Choose(
    const std::string& choice, BatchSystem system,
    const std::map<std::string, std::string>& versions,
    std::optional<Launcher> of_program = std::nullopt) {
  return ChooseLauncher(
      choice, system,
      [versions](const std::string& program) -> absl::StatusOr<std::string> {
        const auto version = versions.find(program);
        if (version == versions.end()) return absl::NotFoundError(program);
        return version->second;
      },
      of_program);
}

constexpr char kOpenMpi[] = "mpirun (Open MPI) 4.1.4\n";
constexpr char kHydra[] = "HYDRA build details:\n    Version: 4.0.2\n";

TEST(ChooseLauncherTest, AutomaticallyByVersionAndBatchSystem) {
  const auto chosen = [](BatchSystem system,
                         const std::map<std::string, std::string>& versions) {
    const auto launcher = Choose("auto", system, versions);
    EXPECT_TRUE(launcher.ok()) << launcher.status();
    return std::string(KindOf(launcher->launcher).name) + " " +
           launcher->program;
  };
  const auto none = BatchSystem::kNone;
  const auto slurm = BatchSystem::kSlurm;
  EXPECT_EQ(chosen(none, {{"mpirun", kOpenMpi}}), "openmpi mpirun");
  EXPECT_EQ(chosen(none, {{"mpiexec", kHydra}}), "mpich mpiexec");
  EXPECT_EQ(chosen(none, {{"mpirun", "Intel(R) MPI Library"}}), "mpich mpirun");
  EXPECT_EQ(chosen(slurm, {{"mpirun", kOpenMpi}, {"srun", "slurm 23"}}),
            "openmpi mpirun");
  EXPECT_EQ(chosen(slurm, {{"mpiexec", kHydra}, {"srun", "slurm 23"}}),
            "srun srun");
  EXPECT_EQ(chosen(slurm, {{"srun", "slurm 23"}}), "srun srun");
  EXPECT_EQ(chosen(BatchSystem::kPjm, {}), "pjsub mpiexec");
}

TEST(ChooseLauncherTest, ItsVersionIsALine) {
  EXPECT_EQ(VersionLine({Launcher::kOpenMpi, "mpirun", "mpirun 5.0.7\n\nBug"}),
            "mpirun 5.0.7");
  EXPECT_EQ(VersionLine({Launcher::kMpich, "mpiexec", kHydra}),
            "HYDRA Version: 4.0.2");
}

TEST(ChooseLauncherTest, OfSeveralTheOneOfTheProgramsMpi) {
  const auto program = [](Launcher of_program,
                          const std::map<std::string, std::string>& versions) {
    return Choose("auto", BatchSystem::kNone, versions, of_program)->program;
  };
  EXPECT_EQ(program(Launcher::kMpich,
                    {{"mpirun", kOpenMpi}, {"mpiexec.hydra", kHydra}}),
            "mpiexec.hydra");
  EXPECT_EQ(program(Launcher::kOpenMpi,
                    {{"mpirun", kHydra}, {"orterun", "orterun (OpenRTE) 4.1"}}),
            "orterun");
  EXPECT_EQ(program(Launcher::kMpich, {{"mpirun", kOpenMpi}}), "mpirun");
}

TEST(ChooseLauncherTest, TheProgramsLibrariesTellItsMpi) {
  EXPECT_EQ(LauncherOfLibraries({{"libc.so.6", "/c"}, {"libmpi.so.40", "/m"}}),
            Launcher::kOpenMpi);
  EXPECT_EQ(LauncherOfLibraries({{"libmpich.so.12", "/m"}}), Launcher::kMpich);
  EXPECT_EQ(LauncherOfLibraries({{"libmpi.so.12", "/m"}}), Launcher::kMpich);
  EXPECT_EQ(LauncherOfLibraries({{"libc.so.6", "/c"}}), std::nullopt);
}

TEST(ChooseLauncherTest, ANamedOneIsTaken) {
  EXPECT_EQ(Choose("srun", BatchSystem::kNone, {})->program, "srun");
  EXPECT_EQ(Choose("mpich", BatchSystem::kNone, {})->program, "mpiexec");
  EXPECT_FALSE(Choose("lam", BatchSystem::kNone, {}).ok());
  EXPECT_EQ(Choose("mpich", BatchSystem::kNone,
                   {{"mpirun", kOpenMpi}, {"mpiexec.hydra", kHydra}})
                ->program,
            "mpiexec.hydra");
  EXPECT_EQ(
      Choose("mpich", BatchSystem::kNone, {{"mpirun", "somebody's"}})->program,
      "mpirun");
  EXPECT_EQ(Choose("mpich", BatchSystem::kNone,
                   {{"mpirun", "somebody's"}, {"mpiexec", kHydra}})
                ->program,
            "mpiexec");
}

TEST(ExportTest, WhatMattersToRanksAndNothingElse) {
  EXPECT_THAT(VariablesToExport(base::FakeEnvironment({{"PATH", ""},
                                                       {"HOME", ""},
                                                       {"UCX_TLS", ""},
                                                       {"OMPI_MCA_pml", ""},
                                                       {"HVDLITE_X", ""},
                                                       {"PATHS", ""}})),
              ElementsAre("HVDLITE_X", "PATH", "UCX_TLS"));
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

RankIdentity Identity(const Pairs& variables, std::optional<int> local_size) {
  const auto identity =
      IdentityOf(base::FakeEnvironment(variables), local_size);
  EXPECT_TRUE(identity.ok()) << identity.status();
  return identity.value_or(RankIdentity{-1, -1, {}});
}

TEST(IdentityTest, IsReadFromEveryLauncher) {
  struct Launched {
    Pairs variables;
    std::optional<int> local_size = {};
  };
  for (const Launched& launched : std::vector<Launched>{
           // A launcher that runs in a SLURM task is nearer than SLURM.
           {{{"SLURM_PROCID", "0"},
             {"SLURM_LOCALID", "0"},
             {"OMPI_COMM_WORLD_RANK", "5"},
             {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
             {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}},
           {{{"PMI_RANK", "5"},
             {"MPI_LOCALRANKID", "1"},
             {"MPI_LOCALNRANKS", "4"}}},
           {{{"PALS_RANKID", "5"},
             {"PALS_LOCAL_RANKID", "1"},
             {"PALS_LOCAL_SIZE", "4"}}},
           // SLURM for Cray's MPI has PMI's of PALS, and not PALS_LOCAL_SIZE.
           {{{"PALS_RANKID", "5"},
             {"PALS_LOCAL_RANKID", "1"},
             {"PMI_RANK", "5"},
             {"PMI_LOCAL_RANK", "1"},
             {"PMI_LOCAL_SIZE", "4"}}},
           {{{"PMIX_RANK", "5"}, {"PLE_RANK_ON_NODE", "1"}}, 4},
           {{{"SLURM_PROCID", "5"},
             {"SLURM_LOCALID", "1"},
             {"SLURM_NODEID", "1"},
             {"SLURM_STEP_TASKS_PER_NODE", "3,4"}},
            2},
           {{{"SLURM_PROCID", "5"}, {"SLURM_LOCALID", "1"}}, 4}}) {
    SCOPED_TRACE(launched.variables.front().first);
    const RankIdentity identity =
        Identity(launched.variables, launched.local_size);
    EXPECT_EQ(identity.rank, 5);
    EXPECT_EQ(identity.local_rank, 1);
    EXPECT_EQ(identity.local_size, 4);
  }
  // Fujitsu's mpiexec with ranks that are dealt unevenly.
  EXPECT_EQ(
      Identity({{"PMIX_RANK", "5"}, {"PLE_RANK_ON_NODE", "1"}}, std::nullopt)
          .local_size,
      std::nullopt);
}

TEST(IdentityTest, ContradictionsAndNoLauncherAreErrors) {
  for (const Pairs& variables : {Pairs{},
                                 {{"PMI_RANK", "5"},
                                  {"MPI_LOCALRANKID", "4"},
                                  {"MPI_LOCALNRANKS", "4"}}}) {
    const auto identity =
        IdentityOf(base::FakeEnvironment(variables), std::nullopt);
    EXPECT_FALSE(identity.ok());
    testing::ExpectGolden(std::string(identity.status().message()));
  }
}

}  // namespace
}  // namespace hvdlite::launch
