// What --dry-run, --version and --check-build print.
#include "tools/hvdliterun/launch/dry_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/testing/golden.h"
#include "tests/tools/hvdliterun/launch/dry_runs.h"
#include "tests/tools/hvdliterun/plan/machines.h"
#include "tools/hvdliterun/launch/about.h"

namespace hvdlite::launch {
namespace {

TEST(DryRunJsonTest, HasTheContentOfTheText) {
  const absl::StatusOr<Job> job = JobOf(
      "--topology 'pack:2 [numa] core:2 pu:1' --comm-core 1 --mem bind "
      "--set 'A=b c' prog 'its argument'",
      {.variables = {{"SLURM_JOB_ID", "7"},
                     {"SLURM_JOB_NODELIST", "n[1-3]"},
                     {"SLURM_NTASKS", "4"},
                     {"SLURM_TASKS_PER_NODE", "2,1(x2)"},
                     {"SLURM_STEP_ID", "0"},
                     {"OMP_PROC_BIND", "spread"}}});
  ASSERT_TRUE(job.ok()) << job.status();
  const std::string text = DryRunJson(*job);
  EXPECT_EQ(text.find('\n'), text.size() - 1) << "more than one line";
  testing::ExpectGolden(text);
  testing::ExpectGolden(RenderDryRun(*job));
}

TEST(DryRunJsonTest, InvalidUtf8IsReplaced) {
  const auto job = JobOf(
      "-np 1 --set A=\xff prog",
      {.libraries = {{.name = "libblas.so.3", .path = "/lib/libblas.so.3"}}});
  ASSERT_TRUE(job.ok()) << job.status();
  const auto plan = nlohmann::json::parse(DryRunJson(*job));
  EXPECT_EQ(plan["environment"][0]["value"], "\xef\xbf\xbd");
  EXPECT_EQ(plan["openblas_core_here"], "Haswell");
  EXPECT_THAT(plan["command"], ::testing::Contains("/lib/libblas.so.3"));
}

TEST(ShellCommandTest, QuotesArguments) {
  EXPECT_EQ(ShellCommand({"a", "b c", "", "it's", "x=1"}),
            "a 'b c' '' 'it'\\''s' x=1");
}

TEST(AboutTest, VersionAndBuildHaveOneLinePerFact) {
  for (const char* mpi : {"4.1.4", "5.0.7", ""}) {
    Place place = {.versions = {}};
    if (*mpi != 0) {
      place.versions["mpirun"] = absl::StrCat("mpirun (Open MPI) ", mpi);
    }
    const HostEnvironment here = HostEnvironmentOf(place);
    std::vector<std::string> lines =
        absl::StrSplit(DescribeBuild({}, here), '\n');
    // These facts differ between builds.
    for (const char* fact : {"hvdlite: ", "compiler: ", "UCX: ", "kernels: "}) {
      ASSERT_TRUE(absl::StartsWith(lines.front(), fact)) << lines.front();
      lines.erase(lines.begin());
    }
    testing::ExpectGolden(absl::StrJoin(lines, "\n"));
    const std::string version = DescribeVersion({}, here);
    EXPECT_TRUE(absl::StartsWith(version, "hvdliterun ")) << version;
    EXPECT_TRUE(absl::EndsWith(version, "\n" + lines.front() + "\n"));
  }
}

}  // namespace
}  // namespace hvdlite::launch
