#include "trainers/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace hvdlite::trainers {
namespace {

struct Pipe {
  base::Descriptor read_end;
  base::Descriptor write_end;
};

Pipe MakePipe() {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(),
                            "cannot make a pipe");
  }
  return {base::Descriptor(ends[0]), base::Descriptor(ends[1])};
}

// For exec, which takes arrays that end with a null pointer.
std::vector<char*> PointersTo(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

ChildProcess::ChildProcess(const std::string& program,
                           std::vector<std::string> arguments,
                           std::vector<std::string> environment) {
  Pipe output = MakePipe();
  Pipe error = MakePipe();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output.write_end.get(),
                                   STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, error.write_end.get(),
                                   STDERR_FILENO);
  const int failure =
      posix_spawn(&id_, program.c_str(), &actions, /*attrp=*/nullptr,
                  PointersTo(arguments).data(), PointersTo(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) {
    throw std::system_error(failure, std::generic_category(),
                            "cannot start " + program);
  }
  output_ = std::move(output.read_end);
  error_ = std::move(error.read_end);
}

ChildProcess::~ChildProcess() {
  if (id_ < 0) return;
  Signal(SIGKILL);
  Wait();
}

void ChildProcess::Signal(int signal) const { kill(id_, signal); }

int ChildProcess::Wait() {
  int status = 0;
  while (waitpid(id_, &status, /*options=*/0) < 0 && errno == EINTR) {
  }
  id_ = -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace hvdlite::trainers
