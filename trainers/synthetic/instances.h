// Independent copies of a program on one machine, as many users would run it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.h"

namespace hvdlite::trainers {

// Puts a prefix before each line of a stream.
class LinePrefixer {
 public:
  explicit LinePrefixer(std::string prefix) : prefix_(std::move(prefix)) {}

  // The lines that `bytes` complete, with the prefix. What follows the last
  // newline is kept for later.
  std::string Add(std::string_view bytes);

  // What is kept, as a line; empty if nothing is.
  std::string Finish();

 private:
  std::string prefix_;
  std::string line_;
};

// Throws InputError if mpirun or srun has started more than one process, as
// the environment tells.
void RequireOneProcess(const base::Environment& environment);

// Runs this program once for each element of `arguments`, which holds the
// arguments of one instance without the program's name, all at the same time.
// Each is a world of its own (HVDLITE_BACKEND=single) on its share of the CPUs
// that this process may use, with as many OpenMP threads; with `share_memory`,
// it may have its share of the machine's memory (RLIMIT_DATA: what it has
// written or may write for itself; not files that it maps or that are cached).
// The lines that instance i writes appear behind "[instance i] ". SIGHUP,
// SIGINT and SIGTERM are passed on. Waits for all instances; returns the first
// exit code, in their order, that is not zero (128 + N of one that signal N
// ended), or else 0. Throws InputError if there are fewer CPUs than instances
// or more than one process, std::system_error if the system refuses to start
// one; those that run are then ended.
int RunInstances(const std::vector<std::vector<std::string>>& arguments,
                 bool share_memory = false);

}  // namespace hvdlite::trainers
