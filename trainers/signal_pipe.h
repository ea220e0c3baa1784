// The signals that end a program, as bytes in a pipe.
#pragma once

#include <optional>

#include "base/descriptor.h"

namespace hvdlite::trainers {

// While it lives, SIGHUP, SIGINT and SIGTERM do not end this process but can be
// read here, on whichever thread they arrive. Processes started meanwhile have
// the signals' defaults. One at a time.
class SignalPipe {
 public:
  // Throws std::system_error.
  SignalPipe();
  ~SignalPipe();
  SignalPipe(const SignalPipe&) = delete;
  SignalPipe& operator=(const SignalPipe&) = delete;

  // Readable, for poll(), when a signal has arrived.
  int descriptor() const { return read_end_.get(); }

  // The next signal that has arrived; nullopt: none. Does not block.
  std::optional<int> Next();

 private:
  base::Descriptor read_end_;
  base::Descriptor write_end_;
};

}  // namespace hvdlite::trainers
