#include "trainers/signal_pipe.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <system_error>

namespace hvdlite::trainers {
namespace {

constexpr std::array<int, 3> kSignals = {SIGHUP, SIGINT, SIGTERM};

// Handlers can reach globals only.
std::atomic<int> handler_descriptor = -1;
std::array<struct sigaction, kSignals.size()> former_actions;

// Calls only what is async-signal-safe: signal-safety(7).
void WriteToPipe(int signal) {
  const int former_errno = errno;
  const auto byte = static_cast<uint8_t>(signal);
  // A full pipe holds signals enough.
  [[maybe_unused]] const ssize_t written =
      write(handler_descriptor.load(), &byte, 1);
  errno = former_errno;
}

}  // namespace

SignalPipe::SignalPipe() {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    throw std::system_error(errno, std::generic_category(),
                            "cannot make a pipe");
  }
  read_end_ = base::Descriptor(ends[0]);
  write_end_ = base::Descriptor(ends[1]);
  handler_descriptor = ends[1];
  struct sigaction action = {};
  action.sa_handler = WriteToPipe;
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &action, &former_actions[i]);
  }
}

SignalPipe::~SignalPipe() {
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], &former_actions[i], nullptr);
  }
}

std::optional<int> SignalPipe::Next() {
  uint8_t byte = 0;
  if (read(read_end_.get(), &byte, 1) != 1) return std::nullopt;
  return byte;
}

}  // namespace hvdlite::trainers
