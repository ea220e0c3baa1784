// A fault at one point of an in-process world.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace hvdlite::testing {

struct Fault {
  enum class Kind {
    kDies,            // the rank ends; its neighbours in the tree notice
    kStops,           // the rank stops forever
    kPauses,          // the rank stops for `ticks`
    kSlow,            // the rank stops again and again for a short time
    kCut,             // messages to and from `peer` are lost
    kDelayed,         // messages to and from `peer` wait for `ticks`
    kDataPlaneFails,  // a call of the data plane returns an error
    kNoMemory,        // a call of the data plane throws
    kCallbackThrows,  // an operation's `allocate` throws
  };
  static constexpr int kKinds = 9;
  enum class Point {
    kStart,        // the rank reads its messages for the first time
    kNegotiation,  // it sends a message
    kAtGate,       // it reports that it has reached a gate
    kPack,         // before a call of the data plane
    kUnpack,       // after a call of the data plane
    kSetMaking,    // it creates the communicator of a process set
    kAllocate,     // an operation allocates its outputs
    kShutdown,     // it has been asked to shut down
  };

  Kind kind = Kind::kDies;
  Point point = Point::kStart;
  int rank = 0;
  int peer = 0;   // the other rank of a link
  int after = 0;  // how often the rank passes the point before
  int ticks = 0;

  // Whether nothing may fail because of this fault.
  bool recovers() const {
    return kind == Kind::kPauses || kind == Kind::kSlow ||
           kind == Kind::kDelayed;
  }
};

absl::string_view NameOf(Fault::Kind kind);
// A text such as "rank 2: dies, at a gate, after 4".
std::string Describe(const Fault& fault);
// A random fault for a world of `size` ranks; the same for the same seed.
Fault RandomFault(uint64_t seed, int size);

}  // namespace hvdlite::testing
