// hvdliterun: starts a program on many ranks, well bound and well set up.

#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <system_error>
#include <vector>

#include "tools/hvdliterun/launch/dry_run.h"
#include "tools/hvdliterun/launch/job.h"
#include "tools/hvdliterun/launch/run_job.h"
#include "tools/hvdliterun/plan/flags.h"
#include "tools/hvdliterun/plan/surroundings.h"
#include "tools/hvdliterun/rank/exec_rank.h"

namespace hvdlite::launch {
namespace {

int Fail(const absl::Status& status) {
  std::cerr << "hvdliterun: " << status.message() << "\n";
  return status.code() == absl::StatusCode::kInternal ? 1 : 2;
}

// The plan beside the logs, for whoever looks at them later.
absl::Status WritePlan(const std::string& folder, const std::string& plan) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::string path = folder + "/hvdliterun.txt";
  std::ofstream file(path);
  file << plan;
  file.close();
  if (file) return absl::OkStatus();
  return absl::PermissionDeniedError(
      "--output-dir: cannot write " + path +
      ": name a folder that you may write to, on a file system that all nodes "
      "see");
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
  const Surroundings surroundings = RealSurroundings();
  const absl::StatusOr<Job> job = MakeJob(*flags, surroundings);
  if (!job.ok()) return Fail(job.status());
  if (flags->dry_run.has_value()) {
    std::cout << (*flags->dry_run == DryRunFormat::kJson ? DryRunJson(*job)
                                                         : RenderDryRun(*job));
    return 0;
  }
  for (const std::string& note : job->notes) {
    std::cerr << "hvdliterun: " << note << "\n";
  }
  if (!flags->output_dir.empty()) {
    const absl::Status written =
        WritePlan(flags->output_dir, RenderDryRun(*job));
    if (!written.ok()) return Fail(written);
  }
  const absl::StatusOr<int> code = RunJob(*job, surroundings.environment);
  if (!code.ok()) return Fail(code.status());
  return *code;
}

}  // namespace
}  // namespace hvdlite::launch

int main(int argc, char** argv) {
  return hvdlite::launch::Main(std::vector<std::string>(argv + 1, argv + argc));
}
