// Errors in a command line or in the batch job around it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/tools/hvdliterun/launch/dry_runs.h"

namespace hvdlite::launch {
namespace {

TEST(RefusalTest, FlagsAndTheirValues) {
  for (const char* line : {"-np 1.5 prog",
                           "--threads 0 prog",
                           "--mapp numa prog",
                           "--output-dirr logs prog",
                           "-x A=1 prog",
                           "--bind-to core prog",
                           "-H '' prog",
                           "--map chip prog",
                           "--mem inherit prog",
                           "--mem bind= prog",
                           "-np 2",
                           "--set A prog",
                           "--preset x prog",
                           "--comm-core x prog",
                           "--dry-run=yaml prog",
                           "--ssh-port 65536 prog",
                           "--network-interface eth0,,x prog",
                           "--map numa --map-by ppr:1:numa prog",
                           "--map-by slot:PE=4 prog",
                           "--hostfile gone prog",
                           "--topology 'two sockets' prog",
                           "--topology /gone.xml prog",
                           "--launcher lam prog",
                           "-np 2 --min-np 3 prog",
                           "-np 4 --max-np 3 prog",
                           "--max-np 2 --min-np 3 prog",
                           "--host-discovery x -H a prog",
                           "--max-restarts -1 prog",
                           "--grace x prog"}) {
    Tells(line);
  }
  Tells("--topology core:2 prog", {.dry_run = false});
}

TEST(RefusalTest, FilesOfFlags) {
  std::filesystem::current_path(::testing::TempDir());
  const std::string path = "hvdliterun_refusal_flags.toml";
  for (const char* text :
       {"npp = 3\n", "np = \"x\"\n", "mem = \"x\"\n", "mapp = \"numa\"\n",
        "[run]\nnp = 3\n", "help = true\n"}) {
    std::ofstream(path) << text;
    Tells(absl::StrCat("--config-file ", path, " prog"));
  }
  std::ofstream(path) << "map = \"numa\"\n";
  // This error is not in the file.
  Tells(absl::StrCat("--config-file ", path, " -np x prog"));
  std::remove(path.c_str());
  Tells("--config-file /gone.toml prog");
}

TEST(RefusalTest, Hosts) {
  for (const char* line :
       {"-H h1:0 prog", "-H h1:x prog", "-H :4 prog", "-H h1,,h2 prog",
        "-H h1: prog", "-np 5 -H a:2,b:1 prog", "--hostfile f prog"}) {
    Tells(line, {.files = {{"f", "n01 slot=4\n"}}});
  }
  Tells("--hostfile f prog", {.files = {{"f", "# no host\n"}}});
}

TEST(RefusalTest, BatchSystems) {
  for (const char* variable : {"PE_HOSTFILE", "PBS_NODEFILE"}) {
    Tells("prog", {.variables = {{variable, "/gone"}}});
    Tells("prog",
          {.variables = {{variable, "/f"}}, .files = {{"/f", "\n \n"}}});
  }
  Tells("prog",
        {.variables = {{"PE_HOSTFILE", "/f"}}, .files = {{"/f", "n1\n"}}});
  Tells("prog", {.variables = {{"PJM_JOBID", "9"},
                               {"PJM_NODE", "2"},
                               {"PJM_PROC_BY_NODE", "0"}}});
  Tells("prog", {.variables = {{"SLURM_JOB_ID", "7"}}});
  const auto slurm = [](const char* hosts, const char* tasks) {
    Tells("prog", {.variables = {{"SLURM_JOB_ID", "7"},
                                 {"SLURM_JOB_NODELIST", hosts},
                                 {"SLURM_TASKS_PER_NODE", tasks}}});
  };
  slurm("n[1-3]", "2(x2)");
  slurm("n[3-1]", "2");
  slurm("n[1-20000]x[1-20000]", "2");
}

TEST(RefusalTest, Plans) {
  const std::string xeon = absl::StrCat("--topology '", kDualXeon6248, "' ");
  Tells(xeon + "-np 2 --map socket --comm-core 20 prog");
  Tells(xeon + "-np 40 --comm-core 0 prog");
  Tells("-np 1 --threads 5 prog");
  Tells(
      "--topology 'pack:1 [numa] [numa] core:2 pu:1' -np 1 --mem bind=0,2 "
      "prog");
}

}  // namespace
}  // namespace hvdlite::launch
