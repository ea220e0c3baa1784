// RestartPolicy: what follows after a start of the job has ended, and whether a
// running one is to make room for other hosts. Decides only; its clock is its
// arguments.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tools/hvdliterun/plan/allocation.h"

namespace hvdlite::launch {

// A rank's exit code when it was asked to stop early, has saved, and can go on.
inline constexpr int kStoppedEarlyExitCode = 85;
// Of ranks that SIGINT has ended, with or without a word (128 + SIGINT).
inline constexpr int kInterruptedExitCode = 130;
// Of bad input: a restart would fail again.
inline constexpr int kBadInputExitCode = 2;
// Of a training that is over, but whose report could not be written.
inline constexpr int kReportLostExitCode = 74;

struct RestartOptions {
  int max_restarts = 0;  // after failures
  // Ranks of a start: as many as the hosts have slots for, within these.
  int min_ranks = 1;
  int max_ranks = 1;
  bool oversubscribe = false;  // hosts take more ranks than they have slots
  // How long a host that is set aside stays so.
  absl::Duration cool_down = absl::Minutes(10);
  // How long hosts that are missing are waited for.
  absl::Duration wait = absl::Minutes(10);
};

// How a start ended.
struct StartEnd {
  int exit_code = 0;
  std::string failed_host =
      {};  // of the rank that failed first, if it is known
  std::vector<std::string> lost_hosts = {};  // that no longer answer
  bool told_to_stop = false;                 // by the user
  bool asked_for_hosts = false;              // as WantsOtherHosts() said
};

class RestartPolicy {
 public:
  struct Decision {
    enum Kind { kStart, kWait, kEnd };
    Kind kind = kEnd;
    int ranks = 0;                 // kStart
    std::vector<Host> hosts = {};  // kStart: in the order in which they are
                                   // known, without those that are set aside
    absl::Time until = absl::InfiniteFuture();  // kWait: at most so long
    int exit_code = 0;                          // kEnd
    // Of kWait and kEnd, as a sentence without its end; empty: nothing went
    // wrong.
    std::string reason = {};
  };

  explicit RestartPolicy(const RestartOptions& options) : options_(options) {}

  // A start has ended.
  void Ended(const StartEnd& end, absl::Time now);

  // What is next, where the hosts `known` could be had. After a wait it is
  // asked again.
  Decision Next(const std::vector<Host>& known, absl::Time now);

  // Whether a job that runs with `ranks` ranks on `hosts` is to stop, to be
  // started on others: more ranks could be had, or a host is no longer known.
  bool WantsOtherHosts(int ranks, const std::vector<Host>& hosts,
                       const std::vector<Host>& known, absl::Time now) const;

  int failures() const { return failures_; }

 private:
  struct SetAside {
    absl::Time until;
    bool lost = false;  // else it may be taken if there is no other
  };

  std::vector<Host> Usable(const std::vector<Host>& known, absl::Time now,
                           bool only_lost_are_not) const;
  int RanksOn(const std::vector<Host>& hosts) const;

  const RestartOptions options_;
  bool started_ = false;  // at least once
  StartEnd last_;
  int failures_ = 0;
  std::string suspect_;  // host of the last failure
  int suspect_failures_ = 0;
  std::map<std::string, SetAside> set_aside_;  // by name
  absl::Time waits_since_ = absl::InfiniteFuture();
};

}  // namespace hvdlite::launch
