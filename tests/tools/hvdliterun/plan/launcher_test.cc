#include "tools/hvdliterun/plan/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/str_join.h"
#include "tools/hvdliterun/rank/exec_rank.h"

namespace hvdlite::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

std::string Command(Launcher launcher, const std::string& program,
                    std::vector<Host> hosts, bool oversubscribe = false) {
  return absl::StrJoin(
      LauncherCommand({.launcher = {.launcher = launcher, .program = program},
                       .hosts = std::move(hosts),
                       .oversubscribe = oversubscribe,
                       .exported = {"PATH"},
                       .arguments = {"--extra"}}),
      " ");
}

const std::vector<Host> kEven = {{"n1", 2}, {"n2", 2}};
const std::vector<Host> kUneven = {{"n1", 2}, {"n2", 1}};

TEST(LauncherCommandTest, OpenMpi) {
  EXPECT_EQ(Command(Launcher::kOpenMpi, "mpirun", kUneven),
            "mpirun -np 3 --host n1:2,n2:1 --map-by slot --bind-to none "
            "-x PATH --extra");
  EXPECT_THAT(Command(Launcher::kOpenMpi, "mpirun", kEven, true),
              HasSubstr("--oversubscribe --mca mpi_yield_when_idle 1"));
}

TEST(LauncherCommandTest, OpenMpiInABatchJobDoesNotCountSlotsAgain) {
  const auto command = [](bool oversubscribe, const char* version = "") {
    return absl::StrJoin(
        LauncherCommand({.launcher = {Launcher::kOpenMpi, "mpirun", version},
                         .hosts = kEven,
                         .slots_of_batch_system = true,
                         .oversubscribe = oversubscribe}),
        " ");
  };
  EXPECT_EQ(command(false),
            "mpirun -np 4 --host n1:2,n2:2 --map-by slot:OVERSUBSCRIBE "
            "--bind-to none");
  EXPECT_THAT(command(true), HasSubstr("--map-by slot --bind-to none "
                                       "--oversubscribe"));
  EXPECT_THAT(command(false, "mpirun (Open MPI) 5.0.7"),
              EndsWith("--bind-to none --prtemca odls_base_max_threads 0 "
                       "--prtemca ras ^gridengine"));
}

TEST(LauncherCommandTest, OpenMpiOnThisHostNamesNoHostAndNoNetworkToStart) {
  EXPECT_EQ(absl::StrJoin(
                LauncherCommand({.launcher = {.launcher = Launcher::kOpenMpi,
                                              .program = "mpirun"},
                                 .hosts = {{"localhost", 2}},
                                 .local = true,
                                 .allow_root = true,
                                 .interfaces = {"lo"},
                                 .exported = {"PATH"}}),
                " "),
            "mpirun -np 2 --map-by slot --bind-to none --allow-run-as-root "
            "--mca btl_tcp_if_include lo");
}

TEST(LauncherCommandTest, Mpich) {
  EXPECT_EQ(Command(Launcher::kMpich, "mpiexec", kUneven),
            "mpiexec -n 3 -hosts n1:2,n2:1 -bind-to none --extra");
}

TEST(LauncherCommandTest, NetworksAndSshAreSpeltAsTheLauncherHasThem) {
  const auto command = [](const LauncherProgram& launcher,
                          std::vector<std::string> interfaces) {
    return absl::StrJoin(LauncherCommand({.launcher = launcher,
                                          .hosts = kEven,
                                          .interfaces = std::move(interfaces),
                                          .ssh = {"-p", "2222"}}),
                         "|");
  };
  EXPECT_THAT(
      command({Launcher::kOpenMpi, "mpirun", "mpirun (Open MPI) 4.1.4"},
              {"eth0", "ib0"}),
      HasSubstr("--mca|btl_tcp_if_include|eth0,ib0|--mca|oob_tcp_if_include|"
                "eth0,ib0|--mca|plm_rsh_args|-p 2222"));
  EXPECT_THAT(
      command({Launcher::kOpenMpi, "mpirun", "mpirun (Open MPI) 5.0.7\n\nBug"},
              {"eth0"}),
      HasSubstr("--mca|btl_tcp_if_include|eth0|--prtemca|prte_if_include|eth0|"
                "--prtemca|plm_ssh_args|-p 2222"));
  const LauncherProgram hydra = {Launcher::kMpich, "mpiexec"};
  EXPECT_THAT(command(hydra, {"eth0"}), HasSubstr("|-iface|eth0"));
  EXPECT_THAT(
      LauncherVariables(
          {.launcher = hydra, .hosts = kEven, .ssh = {"-p", "2222"}}),
      ElementsAre(
          ::testing::Pair("HYDRA_LAUNCHER_EXTRA_ARGS", "-p 2222"),
          ::testing::Pair("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", "-p 2222")));
}

TEST(LauncherCommandTest, HydraOfIntelIsToldNotToBind) {
  EXPECT_EQ(
      absl::StrJoin(LauncherCommand({.launcher = {.launcher = Launcher::kMpich,
                                                  .program = "mpiexec"},
                                     .hosts = {{"localhost", 2}},
                                     .local = true,
                                     .intel_pin = "0"}),
                    " "),
      "mpiexec -n 2 -bind-to none -genv I_MPI_PIN 0");
}

TEST(LauncherCommandTest, SrunWithEquallyManyRanksPerNode) {
  EXPECT_EQ(Command(Launcher::kSrun, "srun", kEven),
            "srun --ntasks=4 --nodes=2 --ntasks-per-node=2 "
            "--distribution=block --nodelist=n1,n2 --cpu-bind=none "
            "--mem-bind=none --export=ALL --kill-on-bad-exit=1 --extra");
}

TEST(LauncherCommandTest, SrunWithDifferentNumbersOfRanks) {
  EXPECT_THAT(Command(Launcher::kSrun, "srun", kUneven, true),
              ::testing::AllOf(
                  HasSubstr("--distribution=arbitrary --nodelist=n1,n1,n2 "),
                  HasSubstr("--overcommit")));
}

TEST(LauncherCommandTest, Pjsub) {
  EXPECT_EQ(Command(Launcher::kPjsub, "mpiexec", kEven),
            "mpiexec -n 4 --extra");
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

TEST(ChooseLauncherTest, WithoutALauncherTheErrorSaysWhatToInstall) {
  EXPECT_THAT(
      std::string(Choose("auto", BatchSystem::kNone, {}).status().message()),
      HasSubstr("openmpi-bin"));
  EXPECT_THAT(std::string(Choose("auto", BatchSystem::kNone,
                                 {{"mpirun", "LAM 7.1\nmore"}})
                              .status()
                              .message()),
              HasSubstr("mpirun: it says 'LAM 7.1'"));
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

TEST(ChooseLauncherTest, ANamedOneThatIsKnownToBeAnotherIsRefused) {
  EXPECT_THAT(std::string(Choose("mpich", BatchSystem::kNone,
                                 {{"mpirun", kOpenMpi}, {"mpiexec", kOpenMpi}})
                              .status()
                              .message()),
              HasSubstr("--launcher mpich: mpiexec here is of the kind "
                        "openmpi"));
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

void ExpectRank5IsNumber1Of4(const RankIdentity& identity) {
  EXPECT_EQ(identity.rank, 5);
  EXPECT_EQ(identity.local_rank, 1);
  EXPECT_EQ(identity.local_size, 4);
}

TEST(IdentityTest, IsReadFromEveryLauncher) {
  // A launcher that runs in a SLURM task is nearer than SLURM.
  ExpectRank5IsNumber1Of4(Identity({{"SLURM_PROCID", "0"},
                                    {"SLURM_LOCALID", "0"},
                                    {"OMPI_COMM_WORLD_RANK", "5"},
                                    {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                    {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}},
                                   std::nullopt));
  ExpectRank5IsNumber1Of4(Identity(
      {{"PMI_RANK", "5"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "4"}},
      std::nullopt));
  ExpectRank5IsNumber1Of4(Identity({{"PALS_RANKID", "5"},
                                    {"PALS_LOCAL_RANKID", "1"},
                                    {"PALS_LOCAL_SIZE", "4"}},
                                   std::nullopt));
  // SLURM for Cray's MPI has PMI's of PALS, and not PALS_LOCAL_SIZE.
  ExpectRank5IsNumber1Of4(Identity({{"PALS_RANKID", "5"},
                                    {"PALS_LOCAL_RANKID", "1"},
                                    {"PMI_RANK", "5"},
                                    {"PMI_LOCAL_RANK", "1"},
                                    {"PMI_LOCAL_SIZE", "4"}},
                                   std::nullopt));
  ExpectRank5IsNumber1Of4(
      Identity({{"PMIX_RANK", "5"}, {"PLE_RANK_ON_NODE", "1"}}, 4));
  ExpectRank5IsNumber1Of4(Identity({{"SLURM_PROCID", "5"},
                                    {"SLURM_LOCALID", "1"},
                                    {"SLURM_NODEID", "1"},
                                    {"SLURM_STEP_TASKS_PER_NODE", "3,4"}},
                                   2));
  ExpectRank5IsNumber1Of4(
      Identity({{"SLURM_PROCID", "5"}, {"SLURM_LOCALID", "1"}}, 4));
}

TEST(IdentityTest, TheNumberOfLocalRanksMayBeUnknown) {
  // Fujitsu's mpiexec with ranks that are dealt unevenly.
  const RankIdentity identity =
      Identity({{"PMIX_RANK", "5"}, {"PLE_RANK_ON_NODE", "1"}}, std::nullopt);
  EXPECT_EQ(identity.rank, 5);
  EXPECT_EQ(identity.local_rank, 1);
  EXPECT_EQ(identity.local_size, std::nullopt);
}

TEST(IdentityTest, ContradictionsAndNoLauncherAreErrors) {
  const auto of = [](const Pairs& variables) {
    return IdentityOf(base::FakeEnvironment(variables), std::nullopt);
  };
  EXPECT_THAT(std::string(of({}).status().message()),
              HasSubstr("OMPI_COMM_WORLD_RANK"));
  EXPECT_THAT(std::string(of({{"PMI_RANK", "5"},
                              {"MPI_LOCALRANKID", "4"},
                              {"MPI_LOCALNRANKS", "4"}})
                              .status()
                              .message()),
              HasSubstr("contradict each other"));
}

}  // namespace
}  // namespace hvdlite::launch
