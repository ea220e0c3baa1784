#include "tools/support/signal_pipe.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace hvdlite::base {
namespace {

constexpr std::array<int, 4> kSignals = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

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
  absl::StatusOr<Pipe> pipe = MakePipe(O_NONBLOCK);
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

}  // namespace hvdlite::base
