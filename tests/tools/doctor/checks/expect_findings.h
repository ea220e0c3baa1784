// ExpectFindings: compares findings with verdicts and with golden texts.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "support/processor.h"
#include "tests/testing/golden.h"
#include "tools/doctor/report.h"

namespace hvdlite::doctor {

// Expects that `findings` have these verdicts, such as "warning ok". Their
// ranks, texts and remedies are golden texts. An ok finding has no remedy.
inline void ExpectFindings(const std::vector<Finding>& findings,
                           const std::string& verdicts) {
  std::vector<std::string> names;
  std::vector<std::string> texts;
  for (const Finding& finding : findings) {
    names.emplace_back(VerdictName(finding.verdict));
    if (finding.verdict == Verdict::kOk) {
      EXPECT_EQ(finding.remedy, "") << finding.seen;
    }
    texts.push_back(
        absl::StrCat(names.back(), finding.ranks.empty() ? "" : " of ranks ",
                     support::FormatCpuList(finding.ranks), ": ", finding.seen,
                     finding.remedy.empty() ? "" : " | fix: ", finding.remedy));
  }
  EXPECT_EQ(absl::StrJoin(names, " "), verdicts);
  testing::ExpectGolden(absl::StrJoin(texts, "\n"));
}

inline void ExpectFindings(const Finding& finding,
                           const std::string& verdicts) {
  ExpectFindings(std::vector<Finding>{finding}, verdicts);
}

}  // namespace hvdlite::doctor
