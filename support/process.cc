#include "support/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace hvdlite::support {
namespace {

// Arrays for exec end with a null pointer.
std::vector<char*> PointersTo(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) {
    pointers.push_back(const_cast<char*>(text.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

// Why a child could not start the program: the message of before_exec, or an
// errno. Neither: the child is ready for exec.
struct Failure {
  int error = 0;
  uint32_t message_bytes = 0;
  std::array<char, 1000> message;  // possibly truncated

  bool is_none() const { return error == 0 && message_bytes == 0; }
};
// A write to a pipe is atomic up to this size.
static_assert(sizeof(Failure) <= PIPE_BUF);

// Data for the child. The child must not allocate memory, since another thread
// may have held malloc's lock at the fork.
struct Start {
  const ProcessOptions& options;
  const char* program;
  char* const* argv;
  char* const* environment;
  const sigset_t& mask;
  pid_t parent;
  int failure;  // descriptor to write a Failure to
  // With before_program: the child waits for a byte from here.
  int gate;
  int gate_writer;
};

[[noreturn]] void Fail(const Start& start, const Failure& failure) {
  (void)!write(start.failure, &failure, sizeof failure);
  _exit(127);
}

// exec resets handlers, but until then a handler of this process would run.
void ResetHandlers() {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action = {};
    if (sigaction(number, nullptr, &action) == 0 &&
        action.sa_handler != SIG_IGN && action.sa_handler != SIG_DFL) {
      signal(number, SIG_DFL);
    }
  }
}

bool Replace(int stream, int by) { return by < 0 || dup2(by, stream) >= 0; }

// Everything between fork and exec.
[[noreturn]] void BecomeProgram(const Start& start) {
  const ProcessOptions& options = start.options;
  ResetHandlers();
  sigprocmask(SIG_SETMASK, &start.mask, nullptr);
  if (options.own_group) setpgid(0, 0);
  if (options.signal_on_death != 0) {
    prctl(PR_SET_PDEATHSIG, options.signal_on_death);
    if (getppid() != start.parent) _exit(1);  // the parent has already ended
  }
  if (!Replace(STDIN_FILENO, options.input) ||
      !Replace(STDOUT_FILENO, options.output) ||
      !Replace(STDERR_FILENO, options.errors)) {
    Fail(start, {.error = errno, .message = {}});
  }
  if (options.before_exec) {
    const absl::Status status = options.before_exec();
    if (!status.ok()) {
      Failure failure;
      failure.message_bytes = static_cast<uint32_t>(status.message().copy(
          failure.message.data(), failure.message.size()));
      Fail(start, failure);
    }
  }
  if (options.before_program) {
    const Failure none = {};
    [[maybe_unused]] const ssize_t written =
        write(start.failure, &none, sizeof none);
    close(start.gate_writer);
    char byte = 0;
    ssize_t count = 0;
    while ((count = read(start.gate, &byte, 1)) < 0 && errno == EINTR) {
    }
    if (count != 1) _exit(1);  // the parent has ended
  }
  execvpe(start.program, start.argv, start.environment);
  Fail(start, {.error = errno, .message = {}});
}

absl::Status StatusOf(const Failure& failure, const std::string& program) {
  if (failure.message_bytes > 0) {
    return absl::FailedPreconditionError(
        absl::string_view(failure.message.data(), failure.message_bytes));
  }
  const std::string message = absl::StrCat("cannot start ", program, ": ",
                                           std::strerror(failure.error));
  if (failure.error == ENOENT) return absl::NotFoundError(message);
  if (failure.error == EACCES) return absl::PermissionDeniedError(message);
  return absl::InternalError(message);
}

// What a child wrote before its end; nullopt: exec succeeded.
std::optional<Failure> ReadFailure(int descriptor) {
  Failure failure;
  ssize_t count = 0;
  do {
    count = read(descriptor, &failure, sizeof failure);
  } while (count < 0 && errno == EINTR);
  if (count != static_cast<ssize_t>(sizeof failure)) return std::nullopt;
  return failure;
}

constexpr std::array<int, 4> kSignals = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

// Signal handlers can access only globals.
std::atomic<int> handler_descriptor = -1;
std::array<struct sigaction, kSignals.size()> former_actions;

// Calls only async-signal-safe functions: signal-safety(7).
void WriteToPipe(int signal) {
  const int former_errno = errno;
  const auto byte = static_cast<uint8_t>(signal);
  // If the pipe is full, enough signals are queued.
  [[maybe_unused]] const ssize_t written =
      write(handler_descriptor.load(), &byte, 1);
  errno = former_errno;
}

}  // namespace

absl::StatusOr<pid_t> StartProcess(const ProcessOptions& options) {
  HVDLITE_ASSIGN_OR_RETURN(base::Pipe failures, base::MakePipe());
  base::Pipe gate;  // a byte allows the child's exec
  if (options.before_program) {
    HVDLITE_ASSIGN_OR_RETURN(gate, base::MakePipe());
  }
  const std::string& program =
      options.program.empty() ? options.command.front() : options.program;
  const std::vector<char*> argv = PointersTo(options.command);
  const std::vector<char*> environment = PointersTo(options.environment);
  // If SIGCHLD is ignored, exit codes of children are lost.
  struct sigaction action = {};
  if (sigaction(SIGCHLD, nullptr, &action) == 0 &&
      action.sa_handler == SIG_IGN) {
    signal(SIGCHLD, SIG_DFL);
  }
  sigset_t all;
  sigset_t mask;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &mask);
  const Start start = {.options = options,
                       .program = program.c_str(),
                       .argv = argv.data(),
                       .environment = environment.data(),
                       .mask = mask,
                       .parent = getpid(),
                       .failure = failures.writer.get(),
                       .gate = gate.reader.get(),
                       .gate_writer = gate.writer.get()};
  const pid_t child = fork();
  if (child == 0) BecomeProgram(start);
  const int fork_error = errno;
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  if (child < 0) {
    return absl::InternalError(absl::StrCat("cannot start ", program, ": ",
                                            std::strerror(fork_error)));
  }
  failures.writer = base::Descriptor();
  std::optional<Failure> failure = ReadFailure(failures.reader.get());
  if (options.before_program && failure.has_value() && failure->is_none()) {
    options.before_program(child);
    const char byte = 1;
    while (write(gate.writer.get(), &byte, 1) < 0 && errno == EINTR) {
    }
    failure = ReadFailure(failures.reader.get());
  }
  if (!failure.has_value()) return child;
  WaitForExit(child);
  return StatusOf(*failure, program);
}

int ExitCode(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status)
                                  : WEXITSTATUS(wait_status);
}

int WaitForExit(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, /*options=*/0) < 0) {
    if (errno != EINTR) return 1;  // already reaped
  }
  return ExitCode(status);
}

SignalPipe::SignalPipe() {
  absl::StatusOr<base::Pipe> pipe = base::MakePipe(O_NONBLOCK);
  if (!pipe.ok()) {
    throw std::runtime_error(std::string(pipe.status().message()));
  }
  pipe_ = *std::move(pipe);
  handler_descriptor = pipe_.writer.get();
  struct sigaction action = {};
  action.sa_handler = WriteToPipe;
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &former_actions[i]);
    if (former_actions[i].sa_handler == SIG_IGN) continue;
    sigaction(kSignals[i], &action, nullptr);
  }
}

SignalPipe::~SignalPipe() {
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &former_actions[i], nullptr);
  }
}

std::optional<int> SignalPipe::Next() const {
  uint8_t byte = 0;
  if (read(pipe_.reader.get(), &byte, 1) != 1) return std::nullopt;
  return byte;
}

bool IsExecutable(const std::string& path) {
  std::error_code error;
  return access(path.c_str(), X_OK) == 0 &&
         std::filesystem::is_regular_file(path, error);
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

absl::StatusOr<std::string> PathOfProgram(
    absl::string_view program, const base::Environment& environment,
    const std::function<bool(const std::string&)>& is_executable,
    const std::function<bool(const std::string&)>& exists) {
  if (absl::StrContains(program, "/")) {
    std::string path(program);
    if (is_executable(path)) return path;
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) {
      return absl::NotFoundError(
          absl::StrCat(path, " is a directory, not a program"));
    }
    return absl::NotFoundError(
        exists(path) ? absl::StrCat(path,
                                    " cannot be executed: chmod +x it, or "
                                    "start it by its interpreter (python3 ",
                                    path, ")")
                     : absl::StrCat("there is no ", path,
                                    ": correct the path, or build it"));
  }
  const std::string path = environment.get("PATH").value_or("/bin:/usr/bin");
  for (const absl::string_view directory : absl::StrSplit(path, ':')) {
    std::string candidate =
        absl::StrCat(directory.empty() ? "." : directory, "/", program);
    if (is_executable(candidate)) return candidate;
  }
  return absl::NotFoundError(
      absl::StrCat("there is no ", program, " in PATH: give its path (./",
                   program, "), or add its directory to PATH"));
}

}  // namespace hvdlite::support
