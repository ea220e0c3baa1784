#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "support/libraries.h"
#include "tools/doctor/check.h"
#include "tools/doctor/checks/host_checks.h"
#include "tools/doctor/checks/software_checks.h"

namespace hvdlite::doctor {
HugePageFacts GatherHugePages(const support::SystemFiles& files,
                              const base::Environment& environment,
                              const std::vector<support::Library>& libraries) {
  const std::string tunables = environment.get("GLIBC_TUNABLES").value_or("");
  HugePageFacts facts = {
      .transparent = support::BracketedChoice(
          files.Line("/sys/kernel/mm/transparent_hugepage/enabled")
              .value_or("")),
      .malloc_asks = absl::StrContains(tunables, "glibc.malloc.hugetlb=") &&
                     !absl::StrContains(tunables, "hugetlb=0"),
      .page_kib = sysconf(_SC_PAGESIZE) / 1024,
      .large_page_library = support::HasLargePageLibrary(libraries),
      .large_page_type = environment.get("XOS_MMM_L_HPAGE_TYPE").value_or("")};
  const std::string directory = "/sys/kernel/mm/hugepages";
  for (const std::string& size : files.Names(directory)) {
    const std::string path = absl::StrCat(directory, "/", size);
    facts.reserved +=
        static_cast<int64_t>(files.Number(path + "/nr_hugepages").value_or(0));
    facts.free += static_cast<int64_t>(
        files.Number(path + "/free_hugepages").value_or(0));
  }
  return facts;
}

Finding JudgeHugePages(const HugePageFacts& facts) {
  std::string seen = absl::StrCat(
      "transparent huge pages: ",
      facts.transparent.empty() ? "not available" : facts.transparent);
  if (facts.reserved > 0) {
    absl::StrAppend(&seen, "; reserved: ", facts.reserved, ", of which ",
                    facts.free, " are free");
  }
  if (facts.large_page_library && facts.large_page_type != "none") {
    return {
        .seen = absl::StrCat(
            seen, "; Fujitsu's libmpg is linked and uses large pages (",
            facts.large_page_type.empty()
                ? "its default type"
                : absl::StrCat("XOS_MMM_L_HPAGE_TYPE=", facts.large_page_type),
            ")")};
  }
  if (facts.large_page_library) {
    return {
        .verdict = Verdict::kNote,
        .seen = absl::StrCat(
            seen, "; XOS_MMM_L_HPAGE_TYPE=none turns off the large pages of ",
            "Fujitsu's libmpg: tensors use pages of ", facts.page_kib, " KiB"),
        .remedy = "unset XOS_MMM_L_HPAGE_TYPE"};
  }
  if (facts.transparent == "always") return {.seen = seen};
  if (facts.transparent == "madvise") {
    if (facts.malloc_asks) {
      return {.seen = absl::StrCat(seen, ", and malloc requests them")};
    }
    return {
        .verdict = Verdict::kNote,
        .seen = absl::StrCat(seen,
                             ", but malloc does not request them: tensors use "
                             "pages of ",
                             facts.page_kib, " KiB"),
        .remedy =
            "export GLIBC_TUNABLES=glibc.malloc.hugetlb=1 (from glibc 2.35; "
            "or hvdliterun --huge-pages), or as root: echo always > "
            "/sys/kernel/mm/transparent_hugepage/enabled"};
  }
  return {.verdict = Verdict::kNote,
          .seen = absl::StrCat(seen, ": tensors use pages of ", facts.page_kib,
                               " KiB"),
          .remedy = facts.transparent.empty()
                        ? ""
                        : "as root: echo madvise > "
                          "/sys/kernel/mm/transparent_hugepage/enabled; then "
                          "export GLIBC_TUNABLES=glibc.malloc.hugetlb=1"};
}

absl::StatusOr<Findings> RunHugePages(Session& session) {
  return Findings{JudgeHugePages(
      GatherHugePages(session.files, session.environment, session.libraries))};
}

}  // namespace hvdlite::doctor
