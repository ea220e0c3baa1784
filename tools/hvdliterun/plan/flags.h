// The command line of hvdliterun.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/hvdliterun/plan/plan.h"
#include "tools/hvdliterun/plan/variables.h"

namespace hvdlite::launch {

// What is told instead of starting a job.
enum class About { kVersion, kBuild };

// How --dry-run tells the plan.
enum class DryRunFormat { kText, kJson };

// Which malloc the ranks use, and how it is set up for tensors: freed memory is
// kept, since the next step needs the same again.
enum class Allocator { kDefault, kJemalloc, kTcmalloc };

struct Flags {
  std::optional<int> ranks;
  std::string host_list;
  std::string hostfile;
  std::optional<Domain> map;
  // --map-by, which gives `map` and, unless they are given themselves,
  // `threads` and `comm_core`.
  std::optional<Placement> placement;
  std::optional<int> threads;
  std::optional<CommCore> comm_core;
  std::optional<Memory> memory;
  Allocator allocator = Allocator::kDefault;
  bool huge_pages = false;
  std::string preset;
  std::string openmp = "auto";
  std::vector<Variable> settings;  // --set first, then hvdlite's knobs
  std::string output_dir;
  bool overwrite = false;  // the logs of an earlier job there
  bool report = false;
  bool verbose = false;                 // tells the plan before each start
  std::optional<DryRunFormat> dry_run;  // none: the job is started
  std::string launcher = "auto";
  std::vector<std::string> launcher_arguments;
  std::vector<std::string> interfaces;  // --network-interface
  std::optional<int> ssh_port;
  std::string ssh_identity_file;
  // Starts after the first one, when ranks fail or hosts come and go.
  int max_restarts = 0;
  std::optional<int> min_ranks;
  std::optional<int> max_ranks;
  std::string host_discovery;  // a program that prints the hosts
  absl::Duration cool_down = absl::Minutes(10);
  absl::Duration elastic_timeout = absl::Minutes(10);
  bool commit_memory = false;
  bool in_place = false;
  absl::Duration grace = absl::Seconds(60);
  bool oversubscribe = false;
  bool allow_root = false;
  std::string topology;
  std::vector<std::string> program;
  // Instead of all that: what --version or --check-build asks for, and the text
  // of --help.
  std::optional<About> about;
  std::string help;
};

// `arguments` without the program's name; what they leave out is taken from the
// file of --config-file. InvalidArgument says what is wrong, and in which file.
absl::StatusOr<Flags> ParseFlags(const std::vector<std::string>& arguments);

}  // namespace hvdlite::launch
