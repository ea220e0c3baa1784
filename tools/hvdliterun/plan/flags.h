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

// What is printed instead of starting a job.
enum class About { kVersion, kBuild };

// The format in which --dry-run prints the plan.
enum class DryRunFormat { kText, kJson };

// The malloc of the ranks. It is set up for tensors: freed memory is kept,
// because the next step needs the same memory again.
enum class Allocator { kDefault, kJemalloc, kTcmalloc };

struct Flags {
  std::optional<int> ranks;
  std::string host_list;
  std::string hostfile;
  std::optional<Domain> map;
  // --map-by. It sets `map` and, if they are not set by their own flags,
  // `threads` and `comm_core`.
  std::optional<Placement> placement;
  std::optional<int> threads;
  std::optional<CommCore> comm_core;
  std::optional<Memory> memory;
  Allocator allocator = Allocator::kDefault;
  bool huge_pages = false;
  std::string preset;
  std::string openmp = "auto";
  std::vector<Variable> settings;  // --set first, then hvdlite's own settings
  std::string output_dir;
  bool overwrite = false;  // remove the logs of an earlier job
  bool report = false;
  bool verbose = false;                 // print the plan before each start
  std::optional<DryRunFormat> dry_run;  // nullopt: start the job
  std::string launcher = "auto";
  std::vector<std::string> launcher_arguments;
  std::vector<std::string> interfaces;  // --network-interface
  std::optional<int> ssh_port;
  std::string ssh_identity_file;
  // Restarts when ranks fail, or hosts appear or disappear.
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
  // Set instead of the fields above: the request of --version or --check-build,
  // or the text of --help.
  std::optional<About> about;
  std::string help;
};

// `arguments`: without the program's name. Flags that are not among them are
// read from the file of --config-file. InvalidArgument names the problem and
// the file.
absl::StatusOr<Flags> ParseFlags(const std::vector<std::string>& arguments);

}  // namespace hvdlite::launch
