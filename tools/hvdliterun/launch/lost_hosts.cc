#include "tools/hvdliterun/launch/lost_hosts.h"

#include <signal.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "support/child_process.h"
#include "tools/hvdliterun/launch/job.h"

namespace hvdlite::launch {
namespace {

constexpr absl::Duration kTryLimit = absl::Seconds(10);

// Whether a program can be started on all of `hosts`.
bool Answer(const Flags& of_job, const HostEnvironment& host_environment,
            Launcher launcher, const std::vector<Host>& hosts) {
  Flags flags;
  flags.host_list =
      absl::StrJoin(hosts, ",", [](std::string* out, const Host& host) {
        absl::StrAppend(out, host.name, ":1");
      });
  flags.launcher = KindOf(launcher).name;
  flags.launcher_arguments = of_job.launcher_arguments;
  flags.interfaces = of_job.interfaces;
  flags.ssh_port = of_job.ssh_port;
  flags.ssh_identity_file = of_job.ssh_identity_file;
  flags.allow_root = of_job.allow_root;
  flags.oversubscribe = true;
  flags.threads = 1;
  flags.program = {"true"};
  // The virtual nodes of the job may not match this number of ranks.
  const absl::StatusOr<Job> job =
      MakeJob(flags, With(host_environment, {{"HVDLITE_VIRTUAL_NODES", ""}}));
  if (!job.ok()) return true;  // this is not a problem of the hosts
  const auto drop = [](absl::string_view) {};
  const absl::StatusOr<support::ChildEnd> end = support::RunChild(
      {.command = job->command,
       .environment = base::EnvironmentEntries(host_environment.environment,
                                               job->launcher_environment),
       .signal_on_death = SIGTERM,
       .output = support::Stream::kPipe,
       .errors = support::Stream::kPipe,
       .on_output = drop,
       .on_errors = drop,
       .limit = kTryLimit,
       .grace = absl::Seconds(2)});
  return end.ok() && end->exit_code == 0;
}

}  // namespace

std::vector<std::string> LostHosts(const Flags& flags,
                                   const HostEnvironment& host_environment,
                                   Launcher launcher,
                                   const std::vector<Host>& hosts) {
  if (Answer(flags, host_environment, launcher, hosts)) return {};
  if (hosts.size() == 1) return {hosts.front().name};
  const auto middle = hosts.begin() + static_cast<long>(hosts.size() / 2);
  std::vector<std::string> lost =
      LostHosts(flags, host_environment, launcher, {hosts.begin(), middle});
  for (std::string& name :
       LostHosts(flags, host_environment, launcher, {middle, hosts.end()})) {
    lost.push_back(std::move(name));
  }
  return lost;
}

}  // namespace hvdlite::launch
