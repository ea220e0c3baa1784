// What hvdliterun makes of command lines, on machines that are not here.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tests/testing/golden.h"
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
  bool dry_run = true;
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

// Those of a shell: 'two words' are one.
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

// For "hvdliterun LINE", in a dry run if `place` says so.
inline absl::StatusOr<Job> JobOf(const std::string& line, const Place& place) {
  std::vector<std::string> words = WordsOf(line);
  if (place.dry_run) words.insert(words.begin(), "--dry-run");
  const absl::StatusOr<Flags> flags = ParseFlags(words);
  if (!flags.ok()) return flags.status();
  return MakeJob(*flags, SurroundingsOf(place));
}

// What --dry-run prints.
inline std::string TextOf(const std::string& line, const Place& place = {}) {
  const absl::StatusOr<Job> job = JobOf(line, place);
  EXPECT_TRUE(job.ok()) << line << ": " << job.status();
  return job.ok() ? RenderDryRun(*job) : "";
}

// The command, what no default gives, and the notes, but for one that most jobs
// have; each line once.
inline std::string GistOf(const std::string& text) {
  std::vector<std::string> gist;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::string told(line.substr(0, line.find(" --env ")));
    if (!(absl::StartsWith(line, "  ") || absl::StartsWith(line, "- ")) ||
        absl::StartsWith(line, "  local rank ") ||
        absl::StartsWith(line, "  package ") ||
        absl::StartsWith(line, "- each node sets OPENBLAS_CORETYPE") ||
        absl::EndsWith(line, " default") ||
        absl::EndsWith(line, " cores of the rank") ||
        std::find(gist.begin(), gist.end(), told) != gist.end()) {
      continue;
    }
    gist.push_back(told);
  }
  return absl::StrJoin(gist, "\n");
}

// That this makes a job; the gist of it is a golden text. The job as JSON.
inline nlohmann::json Plans(const std::string& line, const Place& place = {}) {
  const absl::StatusOr<Job> job = JobOf(line, place);
  EXPECT_TRUE(job.ok()) << line << ": " << job.status();
  if (!job.ok()) return {};
  testing::ExpectGolden(absl::StrCat(line, "\n", GistOf(RenderDryRun(*job))));
  return nlohmann::json::parse(DryRunJson(*job));
}

// That this does not; why is a golden text.
inline void Refuses(
    const std::string& line, const Place& place = {},
    absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
  const absl::StatusOr<Job> job = JobOf(line, place);
  EXPECT_EQ(job.status().code(), code) << line << ": " << job.status();
  testing::ExpectGolden(absl::StrCat(line, ": ", job.status().message()));
}

// The value that NAME has in an "environment" of a job's JSON; "" for none.
inline std::string ValueIn(const nlohmann::json& environment,
                           const std::string& name) {
  for (const nlohmann::json& variable : environment) {
    if (variable["name"] == name) return variable["value"];
  }
  return "";
}

inline const Pairs kSlurm = {
    {"SLURM_JOB_ID", "4711"},       {"SLURM_JOB_NODELIST", "nid[001-003,010]"},
    {"SLURM_NTASKS_PER_NODE", "4"}, {"SLURM_TASKS_PER_NODE", "4(x4)"},
    {"PATH", "/usr/bin"},           {"LD_LIBRARY_PATH", "/opt/lib"}};

}  // namespace hvdlite::launch
