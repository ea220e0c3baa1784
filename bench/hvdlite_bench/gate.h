// GateAlone: the gate that the members of a process set meet at (Gates),
// without the negotiation before it.
#pragma once

#include <memory>

namespace hvdlite::tools {

// A control channel as a world of default configuration has, between all ranks,
// and the rules of gates on it; no thread but the caller's, which polls. Needs
// MPI.
class GateAlone {
 public:
  // Collective. Throws std::runtime_error where there can be no such channel.
  GateAlone();
  ~GateAlone();
  GateAlone(const GateAlone&) = delete;
  GateAlone& operator=(const GateAlone&) = delete;

  // Returns when all ranks have come to the next gate. Throws
  // std::runtime_error where the channel breaks.
  void Meet();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hvdlite::tools
