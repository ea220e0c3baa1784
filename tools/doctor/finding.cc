#include "tools/doctor/finding.h"

#include <nlohmann/json.hpp>

namespace hvdlite::doctor {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Finding, check, verdict, seen, remedy, ranks)

absl::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kNote:
      return "note";
    case Verdict::kWarning:
      return "warning";
    case Verdict::kProblem:
      return "problem";
  }
  return "?";
}

std::string FindingsToText(const std::vector<Finding>& findings) {
  // What /proc and /sys say need not be UTF-8.
  return nlohmann::json(findings).dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
}

absl::StatusOr<std::vector<Finding>> FindingsFromText(const std::string& text) {
  try {
    return nlohmann::json::parse(text).get<std::vector<Finding>>();
  } catch (const nlohmann::json::exception& error) {
    return absl::InternalError(error.what());
  }
}

}  // namespace hvdlite::doctor
