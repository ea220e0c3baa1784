#include "tools/support/piped_child.h"

#include <signal.h>

#include <stdexcept>
#include <utility>

#include "absl/status/statusor.h"
#include "base/descriptor.h"
#include "tools/support/process.h"

namespace hvdlite::trainers {
namespace {

template <typename T>
T ValueOf(absl::StatusOr<T> result) {
  if (!result.ok()) {
    throw std::runtime_error(std::string(result.status().message()));
  }
  return *std::move(result);
}

}  // namespace

ChildProcess::ChildProcess(const std::string& program,
                           std::vector<std::string> arguments,
                           std::vector<std::string> environment) {
  base::Pipe output = ValueOf(base::MakePipe());
  base::Pipe error = ValueOf(base::MakePipe());
  id_ = ValueOf(base::StartProcess({.command = std::move(arguments),
                                    .environment = std::move(environment),
                                    .program = program,
                                    .output = output.writer.get(),
                                    .errors = error.writer.get()}));
  output_ = std::move(output.reader);
  error_ = std::move(error.reader);
}

ChildProcess::~ChildProcess() {
  if (id_ < 0) return;
  Signal(SIGKILL);
  Wait();
}

void ChildProcess::Signal(int signal) const { kill(id_, signal); }

int ChildProcess::Wait() { return base::WaitForExit(std::exchange(id_, -1)); }

}  // namespace hvdlite::trainers
