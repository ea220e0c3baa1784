#include "tools/hvdliterun/plan/job_hosts.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hvdlite::launch {
namespace {

absl::StatusOr<Allocation> NamedHosts(const Flags& flags,
                                      const Surroundings& surroundings) {
  if (!flags.host_list.empty()) return AllocationOfHostList(flags.host_list);
  const absl::StatusOr<std::string> text =
      surroundings.read_file(flags.hostfile);
  if (!text.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--hostfile: ", text.status().message(),
                     "; it is a file with lines such as 'n01 slots=4'"));
  }
  return AllocationOfHostfile(*text, flags.hostfile);
}

absl::StatusOr<Allocation> AllocationOf(const Flags& flags,
                                        const Surroundings& surroundings) {
  if (flags.host_list.empty() && flags.hostfile.empty()) {
    return DetectAllocation(surroundings.environment, surroundings.read_file);
  }
  HVDLITE_ASSIGN_OR_RETURN(Allocation allocation,
                           NamedHosts(flags, surroundings));
  // Some of the job's hosts, as a rule: its launcher has to start there.
  allocation.system = DetectBatchSystem(surroundings.environment);
  return allocation;
}

absl::StatusOr<int> RanksOf(const Flags& flags, const Allocation& allocation,
                            Variables& variables) {
  if (flags.ranks.has_value()) return *flags.ranks;
  if (allocation.slots_are_known) return allocation.slots();
  if (allocation.slots_are_likely && !allocation.hosts.empty()) {
    variables.Note(absl::StrCat(
        allocation.source,
        " has one line for each host: one rank each; for more use -np N, or "
        "mpiprocs in the job's select"));
    return allocation.slots();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "how many ranks? ", allocation.source, " does not say: use -np N"));
}

std::string ShortName(const std::string& host) {
  return host.substr(0, host.find('.'));
}

// Whether ranks run on this host, as far as names tell.
bool UsesThisHost(const Allocation& allocation,
                  const Surroundings& surroundings) {
  // Fujitsu's mpiexec has no names of hosts.
  if (allocation.hosts.empty() || allocation.system == BatchSystem::kPjm) {
    return true;
  }
  return std::any_of(
      allocation.hosts.begin(), allocation.hosts.end(), [&](const Host& host) {
        return host.name == "localhost" || host.name == "127.0.0.1" ||
               ShortName(host.name) == ShortName(surroundings.host_name);
      });
}

}  // namespace

absl::StatusOr<JobHosts> HostsOf(const Flags& flags,
                                 const Surroundings& surroundings,
                                 Variables& variables) {
  JobHosts job = {.allocation = {}, .hosts = {}};
  HVDLITE_ASSIGN_OR_RETURN(job.allocation, AllocationOf(flags, surroundings));
  HVDLITE_ASSIGN_OR_RETURN(job.ranks,
                           RanksOf(flags, job.allocation, variables));
  HVDLITE_ASSIGN_OR_RETURN(
      job.hosts, DealRanks(job.allocation, job.ranks, flags.oversubscribe));
  job.this_host = UsesThisHost(job.allocation, surroundings);
  return job;
}

}  // namespace hvdlite::launch
