// What tests say about findings.
#pragma once

#include <gmock/gmock.h>

#include <ostream>
#include <string>
#include <vector>

#include "tools/doctor/report.h"

namespace hvdlite::doctor {

// For messages of GoogleTest.
inline void PrintTo(const Finding& finding, std::ostream* out) {
  *out << VerdictName(finding.verdict) << " " << finding.check << ": "
       << finding.seen << " | mend: " << finding.remedy << " | ranks "
       << ::testing::PrintToString(finding.ranks);
}

// `seen` and `remedy` are parts of what the finding has there.
MATCHER_P3(Says, verdict, seen, remedy, "") {
  return arg.verdict == verdict && arg.seen.find(seen) != std::string::npos &&
         arg.remedy.find(remedy) != std::string::npos;
}

MATCHER_P(HasVerdict, verdict, "") { return arg.verdict == verdict; }

// Nothing to mend.
MATCHER_P(IsOk, seen, "") {
  return arg.verdict == Verdict::kOk && arg.remedy.empty() &&
         arg.seen.find(seen) != std::string::npos;
}

}  // namespace hvdlite::doctor
