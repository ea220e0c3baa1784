// ProcessLook describes what a rank's process is doing. Standing says whether
// it is worth waiting for.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace hvdlite::negotiation {

// A process at one moment, from /proc.
struct ProcessSample {
  int64_t at_ns = 0;
  char state = 0;  // 'R', 'S', 'D', 'T', ...; 0: not known
  // The system call and the kernel function that its thread sleeps in; empty:
  // not known.
  std::string sleeps_in;
  int64_t cpu_ns = 0;    // of all threads, since it began
  int64_t io_bytes = 0;  // read and written since then
};

// The process over some time, up to now. By default nothing is known.
struct ProcessLook {
  char state = 0;
  std::string sleeps_in;
  int64_t cpu_ms = 0;  // used during `over_ms`
  int64_t over_ms = 0;
  int64_t io_bytes = 0;          // during that, too
  bool waits_for_ranks = false;  // in a call of hvdlite
  bool from_outside = false;     // as seen by another process of its host
};
ProcessLook LookOf(const ProcessSample& before, const ProcessSample& now);

// What a process reports about itself.
struct Explanation {
  ProcessLook process;
  std::string stacks;  // of its threads; at most 4 KiB
};

// Whether a missing process is worth waiting for. The first rule that applies
// counts:
//
//   its process                                        | it is
//   ---------------------------------------------------+----------
//   is stopped, or has ended                           | stuck
//   waits in hvdlite for other ranks (it may poll)     | waiting
//   used the CPU for more than 5 % of the time, or     | computing
//   read and wrote more than 1 MiB per 10 s            |
//   sleeps, or nothing is known of it                  | stuck
//
// A rank that waits for a stuck rank ends the world after a time. It keeps
// waiting for a computing rank. It also keeps waiting for a waiting rank, as
// long as that one may be waiting for a rank that computes.
enum class Standing { kStuck, kComputing, kWaiting };
Standing StandingOf(const ProcessLook& look);

// For example "computes (9.9 s of CPU time in the last 10 s): slow, not stuck".
// Empty if nothing is known.
std::string DescribeProcess(const ProcessLook& look);

// The name of a system call; "system call 999" if it has no name here.
std::string SystemCallName(int64_t number);

}  // namespace hvdlite::negotiation
