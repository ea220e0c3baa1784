#include "trainers/synthetic/instances.h"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>  // program_invocation_name
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <system_error>

#include "base/launcher_environment.h"
#include "support/child_process.h"
#include "support/input_error.h"
#include "support/process.h"
#include "support/processor.h"

namespace hvdlite::trainers {
namespace {

using Children = std::vector<std::unique_ptr<support::ChildProcess>>;

// A stream of a child, and the stream to which its lines go.
struct Stream {
  int source = -1;  // -1 after its end
  FILE* destination = nullptr;
  LinePrefixer prefixer;
};

std::string Prefix(size_t instance) {
  return "[instance " + std::to_string(instance) + "] ";
}

// Limits the memory of processes that start during its lifetime.
class MemoryLimit {
 public:
  explicit MemoryLimit(uint64_t bytes) {
    if (getrlimit(RLIMIT_DATA, &before_) != 0) Throw();
    rlimit limit = before_;
    limit.rlim_cur = std::min<rlim_t>(bytes, before_.rlim_max);
    if (setrlimit(RLIMIT_DATA, &limit) != 0) Throw();
  }
  ~MemoryLimit() { setrlimit(RLIMIT_DATA, &before_); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  [[noreturn]] static void Throw() {
    throw std::system_error(errno, std::generic_category(),
                            "cannot limit the memory of an instance "
                            "(RLIMIT_DATA)");
  }

  rlimit before_{};
};

uint64_t MachineMemoryBytes() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

Children Start(const std::vector<std::vector<std::string>>& arguments,
               bool share_memory) {
  std::optional<MemoryLimit> limit;
  if (share_memory) limit.emplace(MachineMemoryBytes() / arguments.size());
  const std::vector<int> cpus = support::AllowedCpus();
  const auto shares = support::DivideCpus(cpus, std::ssize(arguments));
  Children children;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::vector<std::string> with_name = {program_invocation_name};
    with_name.insert(with_name.end(), arguments[i].begin(), arguments[i].end());
    support::BindThread(shares[i]);
    children.push_back(std::make_unique<support::ChildProcess>(
        "/proc/self/exe", std::move(with_name),
        base::EnvironmentEntries(
            base::ProcessEnvironment(),
            {{"HVDLITE_BACKEND", "single"},
             {"OMP_NUM_THREADS", std::to_string(shares[i].size())}})));
  }
  support::BindThread(cpus);
  return children;
}

void Print(FILE* destination, const std::string& text) {
  std::fputs(text.c_str(), destination);
  std::fflush(destination);
}

// Prints the bytes that have arrived.
void Relay(Stream& stream) {
  std::array<char, 4096> buffer;
  const ssize_t bytes = read(stream.source, buffer.data(), buffer.size());
  if (bytes > 0) {
    Print(stream.destination,
          stream.prefixer.Add({buffer.data(), static_cast<size_t>(bytes)}));
  } else {
    Print(stream.destination, stream.prefixer.Finish());
    stream.source = -1;
  }
}

void PassOn(support::SignalPipe& signals, const Children& children) {
  while (const std::optional<int> signal = signals.Next()) {
    for (const auto& child : children) child->Signal(*signal);
  }
}

// Returns when all children have closed their streams.
void RelayAll(support::SignalPipe& signals, const Children& children) {
  std::vector<Stream> streams;
  for (size_t i = 0; i < children.size(); ++i) {
    streams.push_back({children[i]->output(), stdout, LinePrefixer(Prefix(i))});
    streams.push_back({children[i]->error(), stderr, LinePrefixer(Prefix(i))});
  }
  size_t open = streams.size();
  while (open > 0) {
    // poll() ignores sources of -1.
    std::vector<pollfd> polled = {{signals.descriptor(), POLLIN, 0}};
    for (const Stream& s : streams) polled.push_back({s.source, POLLIN, 0});
    if (poll(polled.data(), polled.size(), /*timeout=*/-1) < 0) continue;
    if (polled[0].revents != 0) PassOn(signals, children);
    for (size_t i = 0; i < streams.size(); ++i) {
      if (polled[i + 1].revents == 0) continue;
      Relay(streams[i]);
      if (streams[i].source < 0) --open;
    }
  }
}

int WaitForAll(const Children& children) {
  int first_failure = 0;
  for (size_t i = 0; i < children.size(); ++i) {
    const int exit_code = children[i]->Wait();
    if (exit_code > 128) {
      Print(stderr, Prefix(i) + "terminated by signal " +
                        std::to_string(exit_code - 128) + "\n");
    }
    if (first_failure == 0) first_failure = exit_code;
  }
  return first_failure;
}

}  // namespace

std::string LinePrefixer::Add(std::string_view bytes) {
  std::string lines;
  for (const char c : bytes) {
    line_ += c;
    if (c != '\n') continue;
    lines += prefix_ + line_;
    line_.clear();
  }
  return lines;
}

std::string LinePrefixer::Finish() {
  return line_.empty() ? std::string() : Add("\n");
}

void RequireOneProcess(const base::Environment& environment) {
  const std::optional<base::PromisedRanks> promised =
      base::SeveralRanksPromised(environment);
  if (!promised.has_value()) return;
  throw support::InputError(
      "--instances starts its own processes, but mpirun or srun has already "
      "started " +
      std::to_string(promised->count) + " (" + promised->variable +
      "); use only one of the two");
}

int RunInstances(const std::vector<std::vector<std::string>>& arguments,
                 bool share_memory) {
  RequireOneProcess(base::ProcessEnvironment());
  support::SignalPipe signals;
  const Children children = Start(arguments, share_memory);
  RelayAll(signals, children);
  return WaitForAll(children);
}

}  // namespace hvdlite::trainers
