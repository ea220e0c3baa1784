#include "tools/hvdliterun/launch/launch_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/hvdliterun/launch/dry_runs.h"

namespace hvdlite::launch {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(LaunchOptionsTest, RootNeedsAContainerOrAFlag) {
  const std::string flag = " --allow-run-as-root /opt";
  const auto with = [](Place place) {
    place.root = true;
    return place;
  };
  EXPECT_THAT(ErrorOf({"-np", "1", "prog"}, with({})),
              HasSubstr("--allow-run-as-root"));
  EXPECT_THAT(TextOf({"-np", "1", "--allow-run-as-root", "prog"}, with({})),
              HasSubstr(flag));
  const std::string docker =
      TextOf({"-np", "1", "prog"}, with({.files = {{"/.dockerenv", ""}}}));
  EXPECT_THAT(docker, HasSubstr(flag));
  EXPECT_THAT(docker, HasSubstr("root in a container"));
  EXPECT_THAT(
      TextOf({"-np", "1", "prog"},
             with({.variables = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                 {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}}})),
      Not(HasSubstr(flag)));
}

TEST(LaunchOptionsTest, GoingOnInPlaceNeedsOpenMpi5AndANumberOfRanks) {
  const std::vector<std::string> arguments = {"-np",      "4", "--in-place",
                                              "--min-np", "2", "./train"};
  EXPECT_THAT(ErrorOf(arguments),
              HasSubstr("--in-place needs Open MPI 5 or later, and the "
                        "launcher is 'mpirun (Open MPI) 4.1.4'"));
  EXPECT_THAT(ErrorOf(arguments, {.versions = {{"mpirun", "HYDRA 4.2"}}}),
              HasSubstr("--max-restarts"));
  EXPECT_THAT(
      TextOf(arguments,
             {.versions = {{"mpirun", "mpirun (Open MPI) 5.0.7\n\nReport"}}}),
      HasSubstr("--with-ft ulfm"));
  EXPECT_THAT(ErrorOf({"-np", "4", "--in-place", "./train"}),
              HasSubstr("needs --min-np"));
}

TEST(LaunchOptionsTest, NetworksAreForMpiUcxAndTheLauncher) {
  const std::vector<std::string> arguments = {"-np", "2", "--network-interface",
                                              "eth0,ib0", "prog"};
  const std::string text = TextOf(arguments);
  EXPECT_THAT(text, HasSubstr("--mca btl_tcp_if_include eth0,ib0"));
  EXPECT_THAT(text, ContainsRegex("UCX_NET_DEVICES=eth0,ib0,mlx5_0:1 +"
                                  "--network-interface"));
  EXPECT_THAT(ErrorOf(arguments, {.versions = {{"mpirun", "HYDRA 4.2"}}}),
              HasSubstr("mpirun (mpich), can be told one"));
  const std::string srun =
      TextOf({"--network-interface", "eth0", "prog"},
             {.variables = kSlurm, .versions = {{"srun", "slurm 23.02"}}});
  EXPECT_THAT(srun, HasSubstr("OMPI_MCA_btl_tcp_if_include=eth0"));
  EXPECT_THAT(ErrorOf({"-np", "1", "--launcher", "pjsub", "--network-interface",
                       "eth0", "prog"}),
              HasSubstr("can be told none"));
}

TEST(LaunchOptionsTest,
     NetworksThatThisHostLacksAreAnErrorUnlessRanksRunElsewhere) {
  const std::string words =
      "--network-interface eth7: this host has no eth7; it has lo, eth0, ib0";
  EXPECT_THAT(ErrorOf({"-np", "2", "--network-interface", "eth7", "prog"}),
              HasSubstr(words));
  EXPECT_THAT(TextOf({"-H", "n1:2", "--network-interface", "eth7", "prog"}),
              HasSubstr(words + ", and is none of the job's"));
}

TEST(LaunchOptionsTest, SshIsToldItsPortAndKeyWhereTheLauncherUsesIt) {
  const std::vector<std::string> arguments = {
      "-H",   "n1:2", "--ssh-port", "2222", "--ssh-identity-file",
      "/key", "prog"};
  EXPECT_THAT(TextOf(arguments, {.files = {{"/key", ""}}}),
              HasSubstr("--mca plm_rsh_args '-p 2222 -i /key'"));
  EXPECT_THAT(TextOf(arguments, {.files = {{"/key", ""}},
                                 .versions = {{"mpirun", "HYDRA 4.2"}}}),
              HasSubstr("HYDRA_LAUNCHER_EXTRA_ARGS='-p 2222 -i /key'"));
  EXPECT_THAT(ErrorOf(arguments), HasSubstr("there is no /key"));
  EXPECT_THAT(ErrorOf({"-np", "1", "--ssh-identity-file", "a key", "prog"},
                      {.files = {{"a key", ""}}}),
              HasSubstr("'a key' has a space"));
  EXPECT_THAT(
      ErrorOf({"-np", "1", "--launcher", "srun", "--ssh-port", "22", "prog"}),
      HasSubstr("srun (srun), does not use ssh"));
  EXPECT_THAT(TextOf({"--ssh-port", "22", "prog"}, {.variables = kSlurm}),
              HasSubstr("--ssh-port matters only if mpirun uses ssh"));
}

TEST(LaunchOptionsTest, TheLauncherOfAnotherMachineIsShownButNotStarted) {
  EXPECT_THAT(TextOf({"-np", "1", "--launcher", "mpich", "prog"}),
              ::testing::AllOf(HasSubstr("  mpiexec -n 1"),
                               HasSubstr("here is of the kind openmpi")));
  EXPECT_FALSE(Plan({"-np", "1", "--launcher", "mpich", "prog"}).ok());
}

}  // namespace
}  // namespace hvdlite::launch
