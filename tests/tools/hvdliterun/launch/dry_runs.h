// Dry runs of hvdliterun for command lines, in simulated host environments.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "support/processor.h"
#include "tests/testing/golden.h"
#include "tests/tools/hvdliterun/plan/machines.h"
#include "tools/hvdliterun/launch/dry_run.h"
#include "tools/hvdliterun/launch/job.h"

namespace hvdlite::launch {

using Pairs = std::vector<std::pair<std::string, std::string>>;

inline constexpr char kSelf[] = "/opt/hvdlite/bin/hvdliterun";

struct Place {
  Pairs variables = {};
  std::map<std::string, std::string> files = {};
  std::map<std::string, std::string> versions = {
      {"mpirun", "mpirun (Open MPI) 4.1.4"}};
  std::vector<support::Library> libraries = {
      {.name = "libgomp.so.1", .path = "/lib/libgomp.so.1"}};
  std::string memory_policy = {};
  bool root = false;
  bool dry_run = true;
};

inline HostEnvironment HostEnvironmentOf(const Place& place) {
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
      .machine = [] { return MachineOf("core:4 pu:1"); },
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
      .self = kSelf,
      .host_name = "login1.cluster",
      .root = place.root};
}

// Splits a line as a shell does: 'two words' are one argument.
inline std::vector<std::string> WordsOf(absl::string_view line) {
  std::vector<std::string> words;
  bool quoted = false;
  for (const absl::string_view part : absl::StrSplit(line, '\'')) {
    const std::vector<std::string> more =
        quoted ? std::vector<std::string>{std::string(part)}
               : absl::StrSplit(part, ' ', absl::SkipEmpty());
    words.insert(words.end(), more.begin(), more.end());
    quoted = !quoted;
  }
  return words;
}

// The job of "hvdliterun LINE"; a dry run if `place` says so.
inline absl::StatusOr<Job> JobOf(const std::string& line, const Place& place) {
  std::vector<std::string> words = WordsOf(line);
  if (place.dry_run) words.insert(words.begin(), "--dry-run");
  const absl::StatusOr<Flags> flags = ParseFlags(words);
  if (!flags.ok()) return flags.status();
  return MakeJob(*flags, HostEnvironmentOf(place));
}

// A short text about a job: the ranks of its hosts (CPUs, xTHREADS, cCPU of the
// coordinator, and memory that is not local); the OpenMP runtime; the
// launcher's command without the part for each rank; variables that are not
// defaults; and the notes, except for one that most jobs have.
inline std::string GistOf(const Job& job) {
  using nlohmann::json;
  const json plan = json::parse(DryRunJson(job));
  std::string gist;
  std::vector<std::string> lines;
  const auto add_variables = [&](const json& environment) {
    for (const json& one : environment) {
      const std::string source = one["source"];
      if (source == "default" || source == "cores of the rank") continue;
      std::string line = absl::StrCat(std::string(one["name"]), "=",
                                      std::string(one["value"]), "  ", source);
      if (!absl::c_linear_search(lines, line)) lines.push_back(std::move(line));
    }
  };
  add_variables(plan["environment"]);
  for (const json& hosts : plan["hosts"]) {
    const std::vector<std::string> names = hosts["names"];
    absl::StrAppend(&gist, absl::StrJoin(names, " "), ":",
                    hosts["planned"].get<bool>() ? "" : " not planned");
    for (const json& rank : hosts.value("ranks", json::array())) {
      const json& coordinator = rank["coordinator_cpu"];
      absl::StrAppend(&gist, " ", support::FormatCpuList(rank["cpus"]), "x",
                      rank["threads"].get<int>(),
                      coordinator.is_null() ? "" : "c" + coordinator.dump());
      if (rank["memory"] != "local") {
        absl::StrAppend(&gist, "@", std::string(rank["memory"]),
                        support::FormatCpuList(rank["memory_nodes"]));
      }
      add_variables(rank["environment"]);
    }
    absl::StrAppend(&gist, "; ");
  }
  absl::StrAppend(&gist, std::string(plan["openmp"]), "\n");
  for (const auto& [name, value] : job.launcher_environment) {
    absl::StrAppend(&gist, ShellCommand({absl::StrCat(name, "=", value)}), " ");
  }
  absl::StrAppend(&gist, ShellCommand({job.command.begin(),
                                       absl::c_find(job.command, kSelf)}));
  for (const std::string& line : lines) absl::StrAppend(&gist, "\n", line);
  for (const std::string& note :
       plan["notes"].get<std::vector<std::string>>()) {
    if (!absl::StartsWith(note, "each node sets OPENBLAS_CORETYPE")) {
      absl::StrAppend(&gist, "\n- ", note);
    }
  }
  return gist;
}

// Compares the job of "hvdliterun LINE", or its error, with a golden text.
inline void Tells(const std::string& line, const Place& place = {}) {
  const absl::StatusOr<Job> job = JobOf(line, place);
  testing::ExpectGolden(absl::StrCat(
      line, ": ", job.ok() ? GistOf(*job) : job.status().ToString()));
}

inline const Pairs kSlurm = {
    {"SLURM_JOB_ID", "4711"},       {"SLURM_JOB_NODELIST", "nid[001-003,010]"},
    {"SLURM_NTASKS_PER_NODE", "4"}, {"SLURM_TASKS_PER_NODE", "4(x4)"},
    {"PATH", "/usr/bin"},           {"LD_LIBRARY_PATH", "/opt/lib"}};

}  // namespace hvdlite::launch
