#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/fnv1a.h"
#include "tools/doctor/check.h"
#include "tools/doctor/checks/gather_facts.h"
#include "tools/doctor/checks/world_checks.h"

namespace hvdlite::doctor {
namespace {

std::string Fingerprint(const std::string& file) {
  return absl::StrFormat(
      "%016x", base::Fnv1a(support::SystemFiles().Text(file).value_or("")));
}

Versions VersionsHere(Session& session) {
  utsname system = {};
  uname(&system);
  const std::string cpuinfo = session.files.Text("/proc/cpuinfo").value_or("");
  Versions versions = {
      {"kernel", system.release},
      {"processor", support::ValueOf(cpuinfo, "model name")},
      {"C library", gnu_get_libc_version()},
      {"MPI", session.mpi.has_value() ? session.mpi->library : ""},
      {"BLAS",
       absl::StrCat(session.blas.facts.kind, " ", session.blas.facts.version,
                    " ", session.blas.facts.core)},
      // The hash of the file is added because hosts may have different copies.
      {"hvdlite", absl::StrCat(HVDLITE_VERSION, " (hash of hvdlite_doctor: ",
                               Fingerprint("/proc/self/exe"), ")")},
  };
  for (const support::Library& library : session.libraries) {
    if (library.name.find("libhvdlite.so") != 0) continue;
    versions["libhvdlite"] = Fingerprint(library.path);
  }
  return versions;
}

// Results or the start of the world depend on these.
bool MustAgree(const std::string& what) {
  return what == "MPI" || what == "hvdlite" || what == "libhvdlite" ||
         what == "BLAS";
}

}  // namespace

std::vector<Finding> JudgeVersions(const std::vector<Versions>& of_rank,
                                   absl::Span<const std::string> host_of_rank) {
  std::set<std::string> names;
  for (const Versions& versions : of_rank) {
    for (const auto& [name, version] : versions) names.insert(name);
  }
  std::vector<Finding> findings;
  for (const std::string& name : names) {
    std::map<std::string, std::vector<int>> ranks_with;
    for (size_t rank = 0; rank < of_rank.size(); ++rank) {
      const auto found = of_rank[rank].find(name);
      ranks_with[found == of_rank[rank].end() ? "" : found->second].push_back(
          static_cast<int>(rank));
    }
    if (ranks_with.size() == 1) continue;
    auto most = ranks_with.begin();
    for (auto it = ranks_with.begin(); it != ranks_with.end(); ++it) {
      if (it->second.size() > most->second.size() ||
          (it->second.size() == most->second.size() &&
           it->second.front() < most->second.front())) {
        most = it;
      }
    }
    for (const auto& [version, ranks] : ranks_with) {
      if (version == most->first) continue;
      std::set<std::string> hosts;
      for (const int rank : ranks) hosts.insert(host_of_rank[rank]);
      findings.push_back(
          {.verdict = MustAgree(name) ? Verdict::kProblem : Verdict::kNote,
           .seen = absl::StrCat(
               name, " is ", version.empty() ? "none" : version, " on ",
               absl::StrJoin(hosts, ", "), ", but ",
               most->first.empty() ? "none" : most->first, " on most ranks"),
           .remedy = absl::StrCat("install the same version on ",
                                  absl::StrJoin(hosts, ", "),
                                  ", or remove it from the host list"),
           .ranks = ranks});
    }
  }
  if (findings.empty()) {
    findings.push_back({.seen = absl::StrCat("the same on all ranks: ",
                                             absl::StrJoin(names, ", ")),
                        .ranks = RanksUpTo(of_rank.size())});
  }
  return findings;
}

absl::StatusOr<Findings> RunVersions(Session& session) {
  HVDLITE_ASSIGN_OR_RETURN(
      const std::vector<Versions> versions,
      GatherFacts<Versions>(session, VersionsHere(session)));
  if (session.topology.rank != 0) return Findings();
  return JudgeVersions(versions, session.topology.host_of_rank);
}

}  // namespace hvdlite::doctor
