#include "tools/hvdliterun/launch/restart_policy.h"

#include <algorithm>
#include <csignal>
#include <numeric>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "support/text_table.h"

namespace hvdlite::launch {
namespace {

bool Contains(const std::vector<Host>& hosts, const std::string& name) {
  return absl::c_any_of(hosts,
                        [&](const Host& host) { return host.name == name; });
}

// The request's signal terminates a program that has no handler for it.
bool HasStoppedAsAsked(int exit_code) {
  return exit_code == kStoppedEarlyExitCode || exit_code == 128 + SIGTERM ||
         exit_code == 128 + SIGUSR1;
}

}  // namespace

void RestartPolicy::Ended(const StartEnd& end, absl::Time now) {
  started_ = true;
  last_ = end;
  for (const std::string& host : end.lost_hosts) {
    set_aside_[host] = {.until = now + options_.cool_down, .lost = true};
  }
  if (end.asked_for_hosts && HasStoppedAsAsked(end.exit_code)) return;
  if (end.exit_code == 0 || end.told_to_stop) return;
  ++failures_;
  suspect_failures_ = end.failed_host == suspect_ ? suspect_failures_ + 1 : 1;
  suspect_ = end.failed_host;
  if (suspect_.empty() || suspect_failures_ < 2) return;
  SetAside& aside = set_aside_[suspect_];
  aside.until = now + options_.cool_down;
}

std::vector<Host> RestartPolicy::Usable(const std::vector<Host>& known,
                                        absl::Time now,
                                        bool only_lost_are_not) const {
  std::vector<Host> usable;
  for (const Host& host : known) {
    const auto aside = set_aside_.find(host.name);
    const bool is_aside = aside != set_aside_.end() &&
                          now < aside->second.until &&
                          (aside->second.lost || !only_lost_are_not);
    if (!is_aside) usable.push_back(host);
  }
  return usable;
}

int RestartPolicy::RanksOn(const std::vector<Host>& hosts) const {
  if (hosts.empty()) return 0;
  int slots = std::accumulate(
      hosts.begin(), hosts.end(), 0,
      [](int sum, const Host& host) { return sum + host.slots; });
  if (options_.oversubscribe) slots = std::max(slots, options_.min_ranks);
  return std::min(slots, options_.max_ranks);
}

RestartPolicy::Decision RestartPolicy::Next(const std::vector<Host>& known,
                                            absl::Time now) {
  const auto end = [&](std::string reason) {
    return Decision{.kind = Decision::kEnd,
                    .exit_code = last_.exit_code,
                    .reason = std::move(reason)};
  };
  if (started_) {
    const bool for_hosts =
        last_.asked_for_hosts && HasStoppedAsAsked(last_.exit_code);
    if (last_.told_to_stop || last_.exit_code == 0) return end("");
    if (!for_hosts) {
      if (last_.exit_code == kStoppedEarlyExitCode ||
          last_.exit_code == kInterruptedExitCode) {
        return end("");
      }
      if (last_.exit_code == kBadInputExitCode) {
        return end(absl::StrCat("exit code ", kBadInputExitCode,
                                " means bad input: a restart would fail "
                                "again"));
      }
      if (last_.exit_code == kReportLostExitCode) {
        return end(absl::StrCat("exit code ", kReportLostExitCode,
                                ": the training finished, but its report could "
                                "not be written"));
      }
      if (failures_ > options_.max_restarts) {
        return end(
            absl::StrCat("the job failed ", support::Counted(failures_, "time"),
                         ", and --max-restarts is ", options_.max_restarts));
      }
    }
  }
  for (const bool only_lost_are_not : {false, true}) {
    std::vector<Host> hosts = Usable(known, now, only_lost_are_not);
    const int ranks = RanksOn(hosts);
    if (ranks < options_.min_ranks) continue;
    waits_since_ = absl::InfiniteFuture();
    return {
        .kind = Decision::kStart, .ranks = ranks, .hosts = std::move(hosts)};
  }
  waits_since_ = std::min(waits_since_, now);
  const absl::Time give_up = waits_since_ + options_.wait;
  const std::vector<Host> usable = Usable(known, now, true);
  const std::string missing =
      absl::StrCat("the usable hosts have room for ", RanksOn(usable),
                   " ranks, but the job needs ", options_.min_ranks, " (",
                   known.size() - usable.size(), " of ", known.size(),
                   " hosts are set aside)");
  if (now >= give_up) {
    Decision decision = end(absl::StrCat(missing, "; no host came back within ",
                                         absl::FormatDuration(options_.wait)));
    if (decision.exit_code == 0 ||
        decision.exit_code == kStoppedEarlyExitCode) {
      decision.exit_code = 1;
    }
    return decision;
  }
  Decision wait = {
      .kind = Decision::kWait, .until = give_up, .reason = missing};
  for (const auto& [name, aside] : set_aside_) {
    if (aside.until > now && Contains(known, name)) {
      wait.until = std::min(wait.until, aside.until);
    }
  }
  return wait;
}

bool RestartPolicy::WantsOtherHosts(int ranks, const std::vector<Host>& hosts,
                                    const std::vector<Host>& known,
                                    absl::Time now) const {
  const std::vector<Host> usable = Usable(known, now, false);
  const int possible = RanksOn(usable);
  if (possible < options_.min_ranks) return false;  // keep the present hosts
  if (possible > ranks) return true;
  return absl::c_any_of(
      hosts, [&](const Host& host) { return !Contains(known, host.name); });
}

}  // namespace hvdlite::launch
