// What --dry-run says of jobs on machines that are not here.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tests/tools/hvdliterun/plan/machines.h"
#include "tools/hvdliterun/launch/dry_run.h"
#include "tools/hvdliterun/launch/job.h"

namespace hvdlite::launch {

using Pairs = std::vector<std::pair<std::string, std::string>>;

struct Place {
  Pairs variables = {};
  std::map<std::string, std::string> files = {};
  std::map<std::string, std::string> versions = {
      {"mpirun", "mpirun (Open MPI) 4.1.4"}};
  std::vector<support::Library> libraries = {
      {.name = "libgomp.so.1", .path = "/lib/libgomp.so.1"}};
  std::string memory_policy = {};
  bool root = false;
};

inline Surroundings SurroundingsOf(const Place& place) {
  return {
      .environment = base::FakeEnvironment(place.variables),
      .read_file =
          [place](const std::string& path) -> absl::StatusOr<std::string> {
        const auto file = place.files.find(path);
        if (file == place.files.end()) {
          return absl::NotFoundError("cannot read " + path);
        }
        return file->second;
      },
      .exists =
          [place](const std::string& path) {
            return place.files.contains(path);
          },
      .is_executable =
          [](const std::string& path) {
            return !absl::StrContains(path, "missing");
          },
      .machine = [] { return SyntheticMachine("core:4 pu:1"); },
      .libraries = [place](const std::string& program)
          -> absl::StatusOr<std::vector<support::Library>> {
        if (absl::EndsWith(program, "/script")) {
          return absl::NotFoundError("a script");
        }
        return place.libraries;
      },
      .version_of =
          [place](const std::string& program) -> absl::StatusOr<std::string> {
        const auto version = place.versions.find(program);
        if (version == place.versions.end()) {
          return absl::NotFoundError(program);
        }
        return version->second;
      },
      .better_openblas_core = [](const std::string&) { return "Haswell"; },
      .interfaces =
          [] {
            return std::vector<NetworkInterface>{
                {"lo", ""}, {"eth0", ""}, {"ib0", "mlx5_0:1"}};
          },
      .memory_policy = place.memory_policy,
      .self = "/opt/hvdlite/bin/hvdliterun",
      .host_name = "login1.cluster",
      .root = place.root};
}

inline absl::StatusOr<Job> JobOf(const std::vector<std::string>& arguments,
                                 const Place& place) {
  const absl::StatusOr<Flags> flags = ParseFlags(arguments);
  if (!flags.ok()) return flags.status();
  return MakeJob(*flags, SurroundingsOf(place));
}

inline absl::StatusOr<std::string> Plan(
    const std::vector<std::string>& arguments, const Place& place = {}) {
  const absl::StatusOr<Job> job = JobOf(arguments, place);
  if (!job.ok()) return job.status();
  return RenderDryRun(*job);
}

inline absl::StatusOr<std::string> DryRun(std::vector<std::string> arguments,
                                          const Place& place = {}) {
  arguments.insert(arguments.begin(), "--dry-run");
  return Plan(arguments, place);
}

inline std::string TextOf(std::vector<std::string> arguments,
                          const Place& place = {}) {
  const auto text = DryRun(std::move(arguments), place);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("");
}

inline std::string ErrorOf(std::vector<std::string> arguments,
                           const Place& place = {}) {
  const auto text = DryRun(std::move(arguments), place);
  EXPECT_FALSE(text.ok()) << *text;
  EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(text.status().message());
}

inline const Pairs kSlurm = {
    {"SLURM_JOB_ID", "4711"},       {"SLURM_JOB_NODELIST", "nid[001-003,010]"},
    {"SLURM_NTASKS_PER_NODE", "4"}, {"SLURM_TASKS_PER_NODE", "4(x4)"},
    {"PATH", "/usr/bin"},           {"LD_LIBRARY_PATH", "/opt/lib"}};

}  // namespace hvdlite::launch
