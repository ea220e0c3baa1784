#include "tools/scaling_sweep/stop_signals.h"

#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace hvdlite::scaling_sweep {

StopSignals::StopSignals() {
  sigset_t stops;
  sigemptyset(&stops);
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) {
    sigaddset(&stops, signal);
  }
  pthread_sigmask(SIG_BLOCK, &stops, &former_mask_);
  descriptor_ =
      base::Descriptor(signalfd(-1, &stops, SFD_CLOEXEC | SFD_NONBLOCK));
}

StopSignals::~StopSignals() {
  pthread_sigmask(SIG_SETMASK, &former_mask_, nullptr);
}

std::optional<int> StopSignals::Next() const {
  signalfd_siginfo signal = {};
  if (read(descriptor_.get(), &signal, sizeof signal) != sizeof signal) {
    return std::nullopt;
  }
  return static_cast<int>(signal.ssi_signo);
}

}  // namespace hvdlite::scaling_sweep
