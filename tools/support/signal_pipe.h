// The signals that end a program, as bytes in a pipe.
#pragma once

#include <optional>

#include "base/pipe.h"

namespace hvdlite::base {

// While it lives, SIGHUP, SIGINT, SIGQUIT and SIGTERM do not end this process
// but can be read here, on whichever thread they arrive. Those that were
// ignored (nohup's SIGHUP) stay so. Processes started meanwhile have the
// signals' defaults. One at a time.
class SignalPipe {
 public:
  // Throws std::runtime_error if the system gives no pipe.
  SignalPipe();
  ~SignalPipe();
  SignalPipe(const SignalPipe&) = delete;
  SignalPipe& operator=(const SignalPipe&) = delete;

  // Readable, for poll(), when a signal has arrived.
  int descriptor() const { return pipe_.reader.get(); }

  // The next signal that has arrived; nullopt: none. Does not block.
  std::optional<int> Next() const;

 private:
  Pipe pipe_;
};

}  // namespace hvdlite::base
