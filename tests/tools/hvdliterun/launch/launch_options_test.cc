#include "tools/hvdliterun/launch/launch_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/hvdliterun/launch/dry_runs.h"

namespace hvdlite::launch {
namespace {

using ::testing::Contains;
using ::testing::Not;

const Place kOfMpich = {.versions = {{"mpirun", "HYDRA 4.2"}}};

TEST(LaunchOptionsTest, RootNeedsAContainerOrAFlag) {
  const auto has_flag = [](const std::string& line, Place place) {
    place.root = true;
    const nlohmann::json command = Plans(line, place)["command"];
    return std::count(command.begin(), command.end(), "--allow-run-as-root");
  };
  Refuses("-np 1 prog", {.root = true});
  EXPECT_EQ(has_flag("-np 1 --allow-run-as-root prog", {}), 1);
  EXPECT_EQ(has_flag("-np 1 prog", {.files = {{"/.dockerenv", ""}}}), 1);
  EXPECT_EQ(has_flag("-np 1 prog",
                     {.variables = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                    {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}}}),
            0);
}

TEST(LaunchOptionsTest, GoingOnInPlaceNeedsOpenMpi5AndANumberOfRanks) {
  const std::string line = "-np 4 --in-place --min-np 2 ./train";
  Refuses(line);
  Refuses(line, kOfMpich);
  EXPECT_THAT(
      Plans(line,
            {.versions = {{"mpirun",
                           "mpirun (Open MPI) 5.0.7\n\nReport"}}})["command"],
      Contains("--with-ft"));
  Refuses("-np 4 --in-place ./train");
}

TEST(LaunchOptionsTest, NetworksAreForMpiUcxAndTheLauncher) {
  const std::string line = "-np 2 --network-interface eth0,ib0 prog";
  const nlohmann::json plan = Plans(line);
  EXPECT_THAT(plan["command"], Contains("btl_tcp_if_include"));
  EXPECT_EQ(ValueIn(plan["environment"], "UCX_NET_DEVICES"),
            "eth0,ib0,mlx5_0:1");
  Refuses(line, kOfMpich);
  const nlohmann::json srun =
      Plans("--network-interface eth0 prog",
            {.variables = kSlurm, .versions = {{"srun", "slurm 23.02"}}});
  EXPECT_EQ(ValueIn(srun["environment"], "OMPI_MCA_btl_tcp_if_include"),
            "eth0");
  Refuses("-np 1 --launcher pjsub --network-interface eth0 prog");
}

TEST(LaunchOptionsTest,
     NetworksThatThisHostLacksAreAnErrorUnlessRanksRunElsewhere) {
  Refuses("-np 2 --network-interface eth7 prog");
  Plans("-H n1:2 --network-interface eth7 prog");
}

TEST(LaunchOptionsTest, SshIsToldItsPortAndKeyWhereTheLauncherUsesIt) {
  const std::string line =
      "-H n1:2 --ssh-port 2222 --ssh-identity-file /key prog";
  Place place = {.files = {{"/key", ""}}};
  EXPECT_THAT(Plans(line, place)["command"], Contains("-p 2222 -i /key"));
  place.versions = kOfMpich.versions;
  EXPECT_EQ(
      Plans(line, place)["launcher_environment"]["HYDRA_LAUNCHER_EXTRA_ARGS"],
      "-p 2222 -i /key");
  Refuses(line);
  Refuses("-np 1 --ssh-identity-file 'a key' prog", {.files = {{"a key", ""}}});
  Refuses("-np 1 --launcher srun --ssh-port 22 prog");
  Plans("--ssh-port 22 prog", {.variables = kSlurm});
}

TEST(LaunchOptionsTest, TheLauncherOfAnotherMachineIsShownButNotStarted) {
  const std::string line = "-np 1 --launcher mpich prog";
  EXPECT_EQ(Plans(line)["command"][0], "mpiexec");
  Refuses(line, {.dry_run = false}, absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace hvdlite::launch
