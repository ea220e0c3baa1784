#include "tools/hvdliterun/launch/run_restarts.h"

#include <malloc.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/commit_store.h"
#include "base/descriptor.h"
#include "base/launcher_environment.h"
#include "base/status_macros.h"
#include "tools/hvdliterun/launch/dry_run.h"
#include "tools/hvdliterun/launch/host_discovery.h"
#include "tools/hvdliterun/launch/job.h"
#include "tools/hvdliterun/launch/job_logs.h"
#include "tools/hvdliterun/launch/lost_hosts.h"
#include "tools/hvdliterun/launch/restart_policy.h"
#include "tools/hvdliterun/launch/run_job.h"

namespace hvdlite::launch {
namespace {

// Prints a message about the end of the job.
void Say(absl::string_view text) {
  std::cerr << absl::StrCat("hvdliterun: ", text, "\n") << std::flush;
}

std::string Names(const std::vector<Host>& hosts) {
  return absl::StrJoin(hosts, ", ", [](std::string* out, const Host& host) {
    absl::StrAppend(out, host.name);
  });
}

// This host's address on the route to `host`.
std::optional<std::string> AddressTowards(const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), "9", &hints, &found) != 0) return std::nullopt;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found,
                                                                 &freeaddrinfo);
  // Nothing is sent: connect() only selects the route.
  const base::Descriptor way(
      socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own = {};
  socklen_t length = sizeof(own);
  char text[NI_MAXHOST] = {};
  if (!way.valid() ||
      connect(way.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      getsockname(way.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0 ||
      getnameinfo(reinterpret_cast<const sockaddr*>(&own), length, text,
                  sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) {
    return std::nullopt;
  }
  return text;
}

// Starts a store that all of `hosts` can reach.
absl::StatusOr<std::unique_ptr<base::CommitStore>> StartStore(
    const std::vector<Host>& hosts, bool others_may_come,
    const HostEnvironment& host_environment) {
  // Without this, malloc raises the threshold with the first commit, and then
  // the arena of each thread keeps a replaced commit.
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
  const auto other = absl::c_find_if(hosts, [&](const Host& host) {
    return !host.name.empty() && !IsThisHost(host.name, host_environment);
  });
  if (other != hosts.end()) {
    return base::CommitStore::Start(
        AddressTowards(other->name).value_or(host_environment.host_name));
  }
  return base::CommitStore::Start(others_may_come ? host_environment.host_name
                                                  : "127.0.0.1");
}

// Runs all starts of one job.
class Restarts {
 public:
  Restarts(const Flags& flags, const HostEnvironment& host_environment)
      : flags_(flags), host_environment_(host_environment) {
    if (!flags.host_discovery.empty()) discovery_.emplace(flags.host_discovery);
  }

  absl::StatusOr<int> Run();

 private:
  // The hosts that the job may use. A single host without a name is this host.
  absl::StatusOr<std::vector<Host>> KnownHosts();
  // The options, with the limits for the number of ranks.
  absl::StatusOr<RestartOptions> OptionsFor(const std::vector<Host>& known);
  Flags FlagsOf(const RestartPolicy::Decision& start) const;
  absl::StatusOr<StartEnd> Start(const RestartPolicy::Decision& start);
  // Waits and logs the reason about once a minute.
  void Wait(const RestartPolicy::Decision& wait);
  void Summarise() const;

  const Flags& flags_;
  const HostEnvironment& host_environment_;
  std::optional<HostDiscovery> discovery_;
  std::vector<Host> given_;  // if there is no discovery
  const absl::Time begun_ = absl::Now();
  std::unique_ptr<base::CommitStore> store_;
  std::optional<RestartPolicy> policy_;
  std::vector<std::string> ends_;  // how each start ended, for the summary
  absl::Time told_of_wait_ = absl::InfinitePast();
};

absl::StatusOr<std::vector<Host>> Restarts::KnownHosts() {
  if (discovery_.has_value()) return discovery_->Ask();
  if (!given_.empty()) return given_;
  HVDLITE_ASSIGN_OR_RETURN(const Allocation allocation,
                           AllocationOf(flags_, host_environment_));
  given_ = allocation.hosts;
  if (!given_.empty()) return given_;
  HVDLITE_ASSIGN_OR_RETURN(const Job job, MakeJob(flags_, host_environment_));
  given_ = {{.name = "", .slots = job.ranks}};
  return given_;
}

absl::StatusOr<RestartOptions> Restarts::OptionsFor(
    const std::vector<Host>& known) {
  RestartOptions options = {.max_restarts = flags_.max_restarts,
                            .oversubscribe = flags_.oversubscribe,
                            .cool_down = flags_.cool_down,
                            .wait = flags_.elastic_timeout};
  int meant = flags_.ranks.value_or(0);
  if (meant == 0 && discovery_.has_value()) {
    for (const Host& host : known) meant += host.slots;
  } else if (meant == 0) {
    HVDLITE_ASSIGN_OR_RETURN(const Job job, MakeJob(flags_, host_environment_));
    meant = job.ranks;
  }
  options.max_ranks = flags_.max_ranks.value_or(meant);
  options.min_ranks =
      std::min(flags_.min_ranks.value_or(meant), options.max_ranks);
  return options;
}

Flags Restarts::FlagsOf(const RestartPolicy::Decision& start) const {
  Flags flags = flags_;
  // If nothing differs from the user's flags, no list of hosts is needed.
  const bool as_given = !discovery_.has_value() && start.hosts == given_ &&
                        start.ranks == flags_.ranks.value_or(start.ranks);
  if (!as_given) flags.ranks = start.ranks;
  if (!as_given && !start.hosts.front().name.empty()) {
    flags.host_list = HostList(start.hosts);
    flags.hostfile.clear();
  }
  if (!flags.output_dir.empty() && !ends_.empty()) {
    absl::StrAppend(&flags.output_dir, "/restart.", ends_.size());
  }
  return flags;
}

absl::StatusOr<StartEnd> Restarts::Start(const RestartPolicy::Decision& start) {
  const bool restarts = flags_.max_restarts > 0 || discovery_.has_value();
  std::vector<std::pair<std::string, std::string>> variables;
  if (restarts) {
    variables.emplace_back(base::kRestartsVariable, absl::StrCat(ends_.size()));
  }
  if (restarts || flags_.in_place) {
    variables.emplace_back(base::kJobStartVariable,
                           absl::StrCat(absl::ToUnixSeconds(begun_)));
  }
  if (store_ != nullptr) {
    variables.emplace_back(base::kCommitStoreVariable, store_->address());
  }
  if (flags_.in_place) {
    variables.emplace_back(
        base::kMinRanksVariable,
        absl::StrCat(flags_.min_ranks.value_or(start.ranks)));
  }
  const HostEnvironment host_environment = With(host_environment_, variables);
  const Flags flags = FlagsOf(start);
  HVDLITE_ASSIGN_OR_RETURN(const Job job, MakeJob(flags, host_environment));
  if (flags.verbose) {
    std::cerr << RenderDryRun(job) << std::flush;
  } else if (ends_.empty()) {
    for (const std::string& note : job.notes) OwnLog().Info(note);
  }
  if (!flags.output_dir.empty()) {
    // Checked again, because another job may have begun meanwhile. RemoveLogs()
    // runs here, when it is certain that this job can be started.
    if (ends_.empty()) {
      HVDLITE_RETURN_IF_ERROR(flags_.overwrite ? RemoveLogs(flags.output_dir)
                                               : CheckLogs(flags.output_dir));
    }
    HVDLITE_RETURN_IF_ERROR(WritePlan(flags.output_dir, RenderDryRun(job)));
  }
  StartEnd end;
  const absl::Time begun = absl::Now();
  const auto wants_stop = [&] {
    if (!discovery_.has_value()) return false;
    const std::vector<Host>& known = discovery_->Poll(absl::Now());
    end.asked_for_hosts =
        policy_->WantsOtherHosts(job.ranks, job.hosts, known, absl::Now());
    if (end.asked_for_hosts) {
      OwnLog().Info(
          absl::StrCat("the hosts are now ", HostList(known),
                       ": asking the job to stop, to start it there"));
    }
    return end.asked_for_hosts;
  };
  HVDLITE_ASSIGN_OR_RETURN(const JobEnd ended,
                           RunJob(job, host_environment.environment,
                                  {.wants_stop = wants_stop,
                                   .grace = flags_.grace,
                                   .shows_noise = flags_.verbose}));
  end.exit_code = ended.exit_code;
  end.told_to_stop = ended.told_to_stop;
  if (ended.first.has_value()) {
    const auto host = absl::c_find_if(job.hosts, [&](const Host& one) {
      return ShortName(one.name) == ShortName(ended.first->host);
    });
    if (host != job.hosts.end()) end.failed_host = host->name;
  }
  const bool failed = end.exit_code != 0 &&
                      end.exit_code != kStoppedEarlyExitCode &&
                      end.exit_code != kInterruptedExitCode &&
                      end.exit_code != kReportLostExitCode;
  if (failed && !end.told_to_stop && job.hosts.size() > 1 && restarts) {
    end.lost_hosts =
        LostHosts(flags_, host_environment_, job.launcher, job.hosts);
  }
  ends_.push_back(absl::StrCat(
      job.ranks, " ranks", job.hosts.empty() ? "" : " on ", Names(job.hosts),
      ", ",
      absl::FormatDuration(
          absl::Trunc(absl::Now() - begun, absl::Milliseconds(100))),
      ": ", ended.summary,
      end.lost_hosts.empty()
          ? ""
          : absl::StrCat("; no program can be started any more on ",
                         absl::StrJoin(end.lost_hosts, ", "))));
  return end;
}

void Restarts::Wait(const RestartPolicy::Decision& wait) {
  const absl::Time now = absl::Now();
  if (now - told_of_wait_ >= absl::Minutes(1)) {
    OwnLog().Warning(absl::StrCat(wait.reason, "; waiting for hosts"));
    told_of_wait_ = now;
  }
  absl::SleepFor(std::min(wait.until - now, absl::Seconds(1)));
}

void Restarts::Summarise() const {
  if (ends_.size() < 2) return;
  std::string text =
      absl::StrCat("the job was started ", ends_.size(), " times:");
  for (size_t i = 0; i < ends_.size(); ++i) {
    absl::StrAppend(&text, "\n  ", i + 1, ": ", ends_[i]);
  }
  Say(text);
}

absl::StatusOr<int> Restarts::Run() {
  if (!flags_.output_dir.empty() && !flags_.overwrite) {
    HVDLITE_RETURN_IF_ERROR(CheckLogs(flags_.output_dir));
  }
  HVDLITE_ASSIGN_OR_RETURN(std::vector<Host> known, KnownHosts());
  HVDLITE_ASSIGN_OR_RETURN(const RestartOptions options, OptionsFor(known));
  policy_.emplace(options);
  if (flags_.commit_memory) {
    HVDLITE_ASSIGN_OR_RETURN(
        store_, StartStore(known, discovery_.has_value(), host_environment_));
  }
  while (true) {
    const RestartPolicy::Decision next = policy_->Next(known, absl::Now());
    if (next.kind == RestartPolicy::Decision::kEnd) {
      if (!next.reason.empty() && ends_.size() > 1) Say(next.reason);
      Summarise();
      return next.exit_code;
    }
    if (next.kind == RestartPolicy::Decision::kWait) {
      Wait(next);
      if (discovery_.has_value()) known = discovery_->Poll(absl::Now());
      continue;
    }
    if (!ends_.empty()) {
      OwnLog().Warning(absl::StrCat(
          "starting again (", policy_->failures(), " of ", flags_.max_restarts,
          " restarts after failures): ", next.ranks, " ranks",
          next.hosts.front().name.empty() ? "" : " on " + Names(next.hosts)));
    }
    const absl::StatusOr<StartEnd> end = Start(next);
    if (!end.ok()) {
      Summarise();
      return end.status();
    }
    policy_->Ended(*end, absl::Now());
    if (end->exit_code == 0) continue;
    // If there is no answer now, the last one stays valid.
    absl::StatusOr<std::vector<Host>> now_known = KnownHosts();
    if (now_known.ok()) known = *std::move(now_known);
  }
}

}  // namespace

absl::StatusOr<int> RunRestarts(const Flags& flags,
                                const HostEnvironment& host_environment) {
  return Restarts(flags, host_environment).Run();
}

}  // namespace hvdlite::launch
