// The signals that ask a program to stop, as a descriptor.
#pragma once

#include <signal.h>

#include <optional>

#include "base/descriptor.h"

namespace hvdlite::scaling_sweep {

// While it lives, SIGHUP, SIGINT, SIGQUIT and SIGTERM do not end this process
// but are kept for reading. For the main thread, before there are others.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Readable, for poll(), when a signal has arrived; -1 if the system has no
  // such descriptor to give.
  int descriptor() const { return descriptor_.get(); }

  // The next signal that has arrived; nullopt: none. Does not block.
  std::optional<int> Next() const;

  // What processes that are started meanwhile should block.
  const sigset_t& former_mask() const { return former_mask_; }

 private:
  sigset_t former_mask_;
  base::Descriptor descriptor_;
};

}  // namespace hvdlite::scaling_sweep
