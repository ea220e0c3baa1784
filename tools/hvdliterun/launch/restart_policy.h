// RestartPolicy: decides whether the job is started again after it has ended,
// and whether a running job should stop to use other hosts. It only decides,
// and gets the time as an argument.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tools/hvdliterun/plan/allocation.h"

namespace hvdlite::launch {

// Exit code of a rank that was asked to stop early, has saved its state, and
// can be continued.
inline constexpr int kStoppedEarlyExitCode = 85;
// Exit code of ranks that SIGINT ended, with or without a message (128 +
// SIGINT).
inline constexpr int kInterruptedExitCode = 130;
// Exit code for bad input: a restart would fail again.
inline constexpr int kBadInputExitCode = 2;
// Exit code of a training that finished but could not write its report.
inline constexpr int kReportLostExitCode = 74;

struct RestartOptions {
  int max_restarts = 0;  // after failures
  // Limits for the ranks of a start. Within them, all slots are used.
  int min_ranks = 1;
  int max_ranks = 1;
  bool oversubscribe = false;  // allow more ranks than slots
  // How long a host is not used after it was set aside.
  absl::Duration cool_down = absl::Minutes(10);
  // How long to wait for missing hosts.
  absl::Duration wait = absl::Minutes(10);
};

// How a start ended.
struct StartEnd {
  int exit_code = 0;
  std::string failed_host = {};  // of the rank that failed first, if known
  std::vector<std::string> lost_hosts = {};  // hosts that no longer answer
  bool told_to_stop = false;                 // the user stopped it
  bool asked_for_hosts = false;              // WantsOtherHosts() requested it
};

class RestartPolicy {
 public:
  struct Decision {
    enum Kind { kStart, kWait, kEnd };
    Kind kind = kEnd;
    int ranks = 0;                 // kStart
    // kStart: in the order of the known hosts, without those set aside.
    std::vector<Host> hosts = {};
    absl::Time until = absl::InfiniteFuture();  // kWait: at most this long
    int exit_code = 0;                          // kEnd
    // kWait and kEnd: a sentence without a full stop; empty: no problem.
    std::string reason = {};
  };

  explicit RestartPolicy(const RestartOptions& options) : options_(options) {}

  // Must be called when a start has ended.
  void Ended(const StartEnd& end, absl::Time now);

  // The next decision, if the hosts `known` are available. Must be called again
  // after a wait.
  Decision Next(const std::vector<Host>& known, absl::Time now);

  // Whether a job with `ranks` ranks on `hosts` should stop to be started on
  // other hosts: more ranks are possible, or a host is no longer known.
  bool WantsOtherHosts(int ranks, const std::vector<Host>& hosts,
                       const std::vector<Host>& known, absl::Time now) const;

  int failures() const { return failures_; }

 private:
  struct SetAside {
    absl::Time until;
    bool lost = false;  // otherwise it may be used if no other is left
  };

  std::vector<Host> Usable(const std::vector<Host>& known, absl::Time now,
                           bool only_lost_are_not) const;
  int RanksOn(const std::vector<Host>& hosts) const;

  const RestartOptions options_;
  bool started_ = false;  // at least one start
  StartEnd last_;
  int failures_ = 0;
  std::string suspect_;  // host of the last failure
  int suspect_failures_ = 0;
  std::map<std::string, SetAside> set_aside_;  // by name
  absl::Time waits_since_ = absl::InfiniteFuture();
};

}  // namespace hvdlite::launch
