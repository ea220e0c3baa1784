// GateAlone: the gate of a process set (Gates) without the negotiation before
// it.
#pragma once

#include <memory>

namespace hvdlite::tools {

// Runs the rules of gates on a control channel between all ranks, with the
// default configuration. The calling thread polls; there is no other thread.
// Needs MPI.
class GateAlone {
 public:
  // Collective. Throws std::runtime_error if no such channel can be created.
  GateAlone();
  ~GateAlone();
  GateAlone(const GateAlone&) = delete;
  GateAlone& operator=(const GateAlone&) = delete;

  // Returns when all ranks have arrived at the next gate. Throws
  // std::runtime_error if the channel breaks.
  void Meet();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hvdlite::tools
