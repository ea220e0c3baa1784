// The checks there are.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/doctor/finding.h"
#include "tools/doctor/session.h"

namespace hvdlite::doctor {

using Findings = std::vector<Finding>;

struct Check {
  std::string name;
  std::string sees;  // for help texts
  bool slow;         // measures; left out by --skip-slow
  // Collective: all ranks run the same checks in the same order. What a rank
  // finds about itself it returns; what is found by comparing ranks rank 0
  // returns, with their numbers. Errors of the communicator are returned as
  // they are.
  absl::StatusOr<Findings> (*run)(Session& session);
};

const std::vector<Check>& AllChecks();

absl::StatusOr<Findings> CheckBlas(Session& session);
absl::StatusOr<Findings> CheckBlasSpeed(Session& session);
absl::StatusOr<Findings> CheckOpenMp(Session& session);
absl::StatusOr<Findings> CheckVariables(Session& session);
absl::StatusOr<Findings> CheckOversubscription(Session& session);
absl::StatusOr<Findings> CheckSmt(Session& session);
absl::StatusOr<Findings> CheckNuma(Session& session);
absl::StatusOr<Findings> CheckHugePages(Session& session);
absl::StatusOr<Findings> CheckFrequency(Session& session);
absl::StatusOr<Findings> CheckMpi(Session& session);
absl::StatusOr<Findings> CheckTransports(Session& session);
absl::StatusOr<Findings> CheckUcx(Session& session);
absl::StatusOr<Findings> CheckAllocator(Session& session);
absl::StatusOr<Findings> CheckMemoryReturn(Session& session);
absl::StatusOr<Findings> CheckMemoryBandwidth(Session& session);
absl::StatusOr<Findings> CheckLinks(Session& session);
absl::StatusOr<Findings> CheckClocks(Session& session);
absl::StatusOr<Findings> CheckVersions(Session& session);
absl::StatusOr<Findings> CheckSlowCore(Session& session);

}  // namespace hvdlite::doctor
