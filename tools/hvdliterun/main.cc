// hvdliterun: starts a program on many ranks, with binding and environment.

#include <iostream>
#include <string>
#include <vector>

#include "tools/hvdliterun/launch/about.h"
#include "tools/hvdliterun/launch/dry_run.h"
#include "tools/hvdliterun/launch/job.h"
#include "tools/hvdliterun/launch/run_restarts.h"
#include "tools/hvdliterun/plan/flags.h"
#include "tools/hvdliterun/plan/host_environment.h"
#include "tools/hvdliterun/rank/exec_rank.h"

namespace hvdlite::launch {
namespace {

int Fail(const absl::Status& status) {
  std::cerr << "hvdliterun: " << status.message() << "\n";
  return status.code() == absl::StatusCode::kInternal ? 1 : 2;
}

int Main(const std::vector<std::string>& arguments) {
  if (!arguments.empty() && arguments.front() == "--exec-rank") {
    return ExecRankMain({arguments.begin() + 1, arguments.end()});
  }
  const absl::StatusOr<Flags> flags = ParseFlags(arguments);
  if (!flags.ok()) {
    std::cerr << "hvdliterun: " << flags.status().message()
              << "; see hvdliterun --help\n";
    return 2;
  }
  if (!flags->help.empty()) {
    std::cout << flags->help;
    return 0;
  }
  const HostEnvironment host_environment = RealHostEnvironment();
  if (flags->about.has_value()) {
    std::cout << (*flags->about == About::kVersion
                      ? DescribeVersion(*flags, host_environment)
                      : DescribeBuild(*flags, host_environment));
    return 0;
  }
  if (flags->dry_run.has_value()) {
    const absl::StatusOr<Job> job = MakeJob(*flags, host_environment);
    if (!job.ok()) return Fail(job.status());
    std::cout << (*flags->dry_run == DryRunFormat::kJson ? DryRunJson(*job)
                                                         : RenderDryRun(*job));
    return 0;
  }
  const absl::StatusOr<int> code = RunRestarts(*flags, host_environment);
  if (!code.ok()) return Fail(code.status());
  return *code;
}

}  // namespace
}  // namespace hvdlite::launch

int main(int argc, char** argv) {
  return hvdlite::launch::Main(std::vector<std::string>(argv + 1, argv + argc));
}
