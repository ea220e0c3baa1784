#include <sys/resource.h>

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/doctor/check.h"
#include "tools/doctor/checks/host_checks.h"

namespace hvdlite::doctor {
namespace {

std::string Gibibytes(int64_t bytes) {
  return absl::StrFormat("%.1f GiB", static_cast<double>(bytes) / (1 << 30));
}

std::optional<int64_t> LimitOf(__rlimit_resource resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 ||
      limit.rlim_cur > std::numeric_limits<int64_t>::max()) {
    return std::nullopt;
  }
  return static_cast<int64_t>(limit.rlim_cur);
}

}  // namespace

std::vector<Finding> JudgeLimits(const LimitFacts& facts) {
  std::vector<Finding> findings;
  if (facts.address_space_bytes) {
    findings.push_back(
        {.verdict = Verdict::kProblem,
         .seen = absl::StrCat(
             "the address space is limited to ",
             Gibibytes(*facts.address_space_bytes),
             ": threads reserve much more than they use, and if OpenBLAS "
             "cannot reserve memory it retries forever without a message"),
         .remedy =
             "ulimit -v unlimited; to limit memory, use a limit on used pages "
             "(a cgroup or SLURM's --mem)"});
  }
  if (facts.file_bytes) {
    findings.push_back(
        {.verdict = Verdict::kWarning,
         .seen =
             absl::StrCat("files are limited to ", Gibibytes(*facts.file_bytes),
                          ": a larger checkpoint or timeline fails"),
         .remedy = "ulimit -f unlimited"});
  }
  // For sockets, pipes and shared memory of the other ranks, libraries, data.
  const int64_t needed = 256 + 16 * facts.ranks_on_host;
  if (facts.open_files < needed) {
    findings.push_back(
        {.verdict = Verdict::kWarning,
         .seen = absl::StrCat("a rank may open ", facts.open_files,
                              " files, but with ", facts.ranks_on_host,
                              " ranks on its host MPI and hvdlite may need ",
                              needed),
         .remedy = absl::StrCat("ulimit -n ", 4 * needed)});
  }
  if (findings.empty()) {
    findings.push_back(
        {.seen =
             "no limit on address space and file sizes; enough open files"});
  }
  return findings;
}

absl::StatusOr<Findings> RunLimits(Session& session) {
  const collective::Topology& topology = session.topology;
  LimitFacts facts = {.address_space_bytes = LimitOf(RLIMIT_AS),
                      .file_bytes = LimitOf(RLIMIT_FSIZE),
                      .ranks_on_host = topology.local_size};
  facts.open_files =
      LimitOf(RLIMIT_NOFILE).value_or(std::numeric_limits<int64_t>::max());
  return JudgeLimits(facts);
}

}  // namespace hvdlite::doctor
