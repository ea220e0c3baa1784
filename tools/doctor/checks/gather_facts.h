// GatherFacts: every rank's facts, for whoever judges them together.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "collective/communicator.h"
#include "tools/doctor/check.h"

namespace hvdlite::doctor {

// Collective. By rank. `Facts` is known to nlohmann::json; its texts, as /proc
// and the environment have them, need not be UTF-8.
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
      return absl::InternalError("a rank's facts are damaged: " + text);
    }
    facts.push_back(json.get<Facts>());
  }
  return facts;
}

}  // namespace hvdlite::doctor
