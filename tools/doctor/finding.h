// Finding: one verdict about the machine, the environment or the world.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hvdlite::doctor {

// From best to worst.
enum class Verdict {
  kOk,
  kNote,     // worth knowing; may cost a little
  kWarning,  // costs time, or misleads
  kProblem   // costs much time, or breaks something
};

// "ok", "note", "warning", "problem".
absl::string_view VerdictName(Verdict verdict);

struct Finding {
  std::string check;  // the name that --check takes
  Verdict verdict = Verdict::kOk;
  std::string seen;  // what was seen, where
  std::string remedy =
      "";  // the command or setting that mends it; may be empty
  // The ranks that it is about, ascending; empty: the one that returns it.
  std::vector<int> ranks = {};
};

// For the way to rank 0.
std::string FindingsToText(const std::vector<Finding>& findings);
absl::StatusOr<std::vector<Finding>> FindingsFromText(const std::string& text);

}  // namespace hvdlite::doctor
