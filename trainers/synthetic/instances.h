// Independent copies of a program on one machine, as many users would run them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.h"

namespace hvdlite::trainers {

// Adds a prefix to each line of a stream.
class LinePrefixer {
 public:
  explicit LinePrefixer(std::string prefix) : prefix_(std::move(prefix)) {}

  // Returns the lines that `bytes` complete, with the prefix. Keeps the bytes
  // after the last newline for later.
  std::string Add(std::string_view bytes);

  // Returns the kept bytes as a line; empty if there are none.
  std::string Finish();

 private:
  std::string prefix_;
  std::string line_;
};

// Throws InputError if the environment shows that mpirun or srun has started
// more than one process.
void RequireOneProcess(const base::Environment& environment);

// Runs one copy of this program for each element of `arguments`, all at the
// same time. An element holds the arguments of one instance without the
// program's name. Waits for all instances. Returns the first nonzero exit code
// in their order, or 0; the exit code is 128 + N after signal N.
//
// Each instance is a world of its own (HVDLITE_BACKEND=single). It gets its
// share of the CPUs that this process may use, with as many OpenMP threads.
// With `share_memory` it also gets its share of the machine's memory as a limit
// (RLIMIT_DATA: private memory that it has written or may write; not mapped or
// cached files). The lines of instance i are printed with the prefix "[instance
// i] ". SIGHUP, SIGINT and SIGTERM are passed on.
//
// Throws InputError if there are fewer CPUs than instances, or more than one
// process. Throws std::system_error if the system cannot start an instance; the
// running ones are then terminated.
int RunInstances(const std::vector<std::vector<std::string>>& arguments,
                 bool share_memory = false);

}  // namespace hvdlite::trainers
