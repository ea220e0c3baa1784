// A process whose output is read.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/descriptor.h"

namespace hvdlite::trainers {

class ChildProcess {
 public:
  // Runs `program` with `arguments` (the first is its name) and `environment`
  // ("NAME=value"), bound to the CPUs of the calling thread. Throws
  // std::runtime_error if the system refuses.
  ChildProcess(const std::string& program, std::vector<std::string> arguments,
               std::vector<std::string> environment);
  // Kills the process if Wait() has not returned.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Standard output and error, to read from.
  int output() const { return output_.get(); }
  int error() const { return error_.get(); }

  void Signal(int signal) const;

  // Waits for its end; call it once. Returns its exit code, or 128 + N if
  // signal N has ended it, as shells do.
  int Wait();

 private:
  pid_t id_ = -1;  // -1 after its end
  base::Descriptor output_;
  base::Descriptor error_;
};

}  // namespace hvdlite::trainers
