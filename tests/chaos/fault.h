// One fault at one point of an in-process world's life.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace hvdlite::testing {

struct Fault {
  enum class Kind {
    kDies,            // and its neighbours in the tree notice
    kStops,           // for good
    kPauses,          // stands still for `ticks`
    kSlow,            // stands still again and again
    kCut,             // messages to and from `peer` are lost
    kDelayed,         // messages to and from `peer` wait for `ticks`
    kDataPlaneFails,  // a call of it returns an error
    kNoMemory,        // a call of the data plane throws
    kCallbackThrows,  // an operation's `allocate` throws
  };
  static constexpr int kKinds = 9;
  enum class Point {
    kStart,        // it looks at its messages for the first time
    kNegotiation,  // it sends a message
    kAtGate,       // it tells that it has come to a gate
    kPack,         // before a call of the data plane
    kUnpack,       // after one
    kSetMaking,    // it makes a process set's communicator
    kAllocate,     // an operation allocates its outputs
    kShutdown,     // it has been told to shut down
  };

  Kind kind = Kind::kDies;
  Point point = Point::kStart;
  int rank = 0;
  int peer = 0;   // of links
  int after = 0;  // how often the point is passed before
  int ticks = 0;

  // Nothing may fail because of it.
  bool recovers() const {
    return kind == Kind::kPauses || kind == Kind::kSlow ||
           kind == Kind::kDelayed;
  }
};

absl::string_view NameOf(Fault::Kind kind);
// "rank 2 dies at a gate, the 5th time".
std::string Describe(const Fault& fault);
// One that a world of `size` ranks may have; the same for the same seed.
Fault RandomFault(uint64_t seed, int size);

}  // namespace hvdlite::testing
