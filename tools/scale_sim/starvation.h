// What a team of threads loses to a communication thread on its cores.
#pragma once

namespace hvdlite::scale_sim {

enum class CommunicationCore {
  kShared,  // one of the team's: the kernel gives each of the two half of it
  kOwn,     // set aside: the team has one thread fewer
  kSpare,   // one that the team would not use anyway
};

// The part of its speed that a team of `threads` threads loses, in loops that
// are cut into equal parts (OpenMP's static schedule: all wait for the
// slowest), while the communication thread is runnable for `busy_share` of the
// time. A thread that shares its core then runs at half its speed.
inline double StarvedShare(CommunicationCore core, int threads,
                           double busy_share) {
  switch (core) {
    case CommunicationCore::kShared:
      return busy_share / 2;
    case CommunicationCore::kOwn:
      // A team of one has no core to set aside.
      return threads > 1 ? 1.0 / threads : busy_share / 2;
    case CommunicationCore::kSpare:
      break;
  }
  return 0;
}

}  // namespace hvdlite::scale_sim
