// GatherFacts: gathers the facts of all ranks, for checks that compare ranks.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "collective/communicator.h"
#include "tools/doctor/check.h"

namespace hvdlite::doctor {

// Collective. Returns the facts by rank. nlohmann::json must be able to convert
// `Facts`. Its texts may be invalid UTF-8, as texts of /proc and of the
// environment are.
template <typename Facts>
absl::StatusOr<std::vector<Facts>> GatherFacts(Session& session,
                                               const Facts& mine) {
  HVDLITE_ASSIGN_OR_RETURN(
      const std::vector<std::string> texts,
      collective::GatherOrFail(
          session.communicator,
          nlohmann::json(mine).dump(-1, ' ', false,
                                    nlohmann::json::error_handler_t::replace),
          session.topology.host_of_rank));
  std::vector<Facts> facts;
  for (const std::string& text : texts) {
    const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
    if (json.is_discarded()) {
      return absl::InternalError("facts of a rank are not valid JSON: " + text);
    }
    facts.push_back(json.get<Facts>());
  }
  return facts;
}

}  // namespace hvdlite::doctor
