#include "tools/hvdliterun/rank/rank_command.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/testing/golden.h"

namespace hvdlite::launch {
namespace {

TEST(RankCommandTest, CommandRoundTrips) {
  const ExecRankOptions all = {
      .plan = {.domain = Domain::kSocket,
               .threads = 3,
               .comm_core = {.kind = CommCore::Kind::kNumber, .number = 2},
               .memory = *ParseMemory("bind=0,2-3"),
               .oversubscribe = true},
      .choices = {.openmp = support::OpenMpRuntime::kLlvm,
                  .threads_given = true,
                  .comm_core_given = true},
      .local_size = 4,
      .bound_by_launcher = true,
      .openblas = "/lib/libblas.so.3",
      .output_dir = "my logs",
      .report = true,
      .terminal = true,
      .in_place = true,
      .settings = {"A=b c", "B="},
      .program = {"prog", "--map", "--"}};
  const std::vector<std::string> words = ExecRankCommand("hvdliterun", all);
  const auto read = ParseExecRank({words.begin() + 2, words.end()});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ExecRankCommand("hvdliterun", *read), words);
  EXPECT_FALSE(ParseExecRank({"--map", "node"}).ok()) << "no program";
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

RankIdentity Identity(const Pairs& variables, std::optional<int> local_size) {
  const auto identity =
      IdentityOf(base::FakeEnvironment(variables), local_size);
  EXPECT_TRUE(identity.ok()) << identity.status();
  return identity.value_or(RankIdentity{-1, -1, {}});
}

TEST(IdentityTest, ReadsTheVariablesOfEveryLauncher) {
  struct Launched {
    Pairs variables;
    std::optional<int> local_size = {};
  };
  for (const Launched& launched : std::vector<Launched>{
           // A launcher that runs in a SLURM task takes precedence over SLURM.
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
           // SLURM for Cray's MPI sets PALS' variables for PMI, but not
           // PALS_LOCAL_SIZE.
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
  // Fujitsu's mpiexec with an uneven distribution of ranks.
  EXPECT_EQ(
      Identity({{"PMIX_RANK", "5"}, {"PLE_RANK_ON_NODE", "1"}}, std::nullopt)
          .local_size,
      std::nullopt);
}

TEST(IdentityTest, ContradictionsAndMissingLaunchersAreErrors) {
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
