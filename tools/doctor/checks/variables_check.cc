#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/config/config_loader.h"
#include "support/libraries.h"
#include "support/openmp.h"
#include "tools/doctor/check.h"
#include "tools/doctor/checks/software_checks.h"

namespace hvdlite::doctor {
namespace {

// Why no library reads a variable, and what to set instead (may be empty).
struct Unread {
  std::string why;
  std::string instead = "";
};

Finding DoesNothing(const std::string& name, const std::string& value,
                    const Unread& unread) {
  return {
      .verdict = Verdict::kWarning,
      .seen = absl::StrCat(name, "=", value, " does nothing: ", unread.why),
      .remedy = absl::StrCat(
          "unset ", name,
          unread.instead.empty() ? "" : absl::StrCat("; ", unread.instead))};
}

// The finding if only the doctor's own libraries are known.
Finding DoesNothingInTheDoctor(const std::string& name,
                               const std::string& value, const Unread& unread) {
  Finding finding = DoesNothing(name, value, unread);
  finding.verdict = Verdict::kNote;
  finding.seen = absl::StrCat(
      name, "=", value, " does nothing in hvdlite_doctor itself: ", unread.why,
      "; your program may have other libraries");
  finding.remedy = absl::StrCat(
      "run hvdlite_doctor --program YOUR_PROGRAM; if it reports the same: ",
      finding.remedy);
  return finding;
}

// docs/migrating_from_horovod.md has the same list.
std::string InsteadOfHorovod(const std::string& name,
                             const std::string& value) {
  static const auto* const same_value = new std::map<std::string, std::string>{
      {"HOROVOD_TIMELINE", "HVDLITE_TIMELINE"},
      {"HOROVOD_FUSION_THRESHOLD", "HVDLITE_FUSION_THRESHOLD_BYTES"},
      {"HOROVOD_STALL_CHECK_TIME_SECONDS", "HVDLITE_STALL_WARNING_SECONDS"},
      {"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "HVDLITE_STALL_FAILURE_SECONDS"},
      {"HOROVOD_LOG_LEVEL", "HVDLITE_LOG_LEVEL"},
      {"HOROVOD_THREAD_AFFINITY", "HVDLITE_COORDINATOR_CORE"},
  };
  const auto found = same_value->find(name);
  if (found != same_value->end()) {
    return absl::StrCat("export ", found->second, "=", value);
  }
  return "";
}

std::optional<Unread> UnreadKmp(const std::string& name,
                                const std::string& value,
                                const std::set<std::string>& openmp) {
  if (openmp.contains("LLVM")) return std::nullopt;
  return Unread{
      .why = absl::StrCat("the OpenMP runtime is from ", *openmp.begin(),
                          ", but KMP_ variables are for Intel's and LLVM's"),
      .instead = GnuInsteadOfKmp(name, value)};
}

// OMP_PLACES with one place per CPU, for a GOMP_CPU_AFFINITY like "0 3 4-10:2".
// Empty if `list` is invalid.
std::string PlacesOfCpus(const std::string& list) {
  std::vector<std::string> places;
  for (const absl::string_view word :
       absl::StrSplit(list, absl::ByAnyChar(" ,"), absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> range_and_stride =
        absl::StrSplit(word, absl::MaxSplits(':', 1));
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(range_and_stride.first, absl::MaxSplits('-', 1));
    int first = 0;
    if (!absl::SimpleAtoi(ends.first, &first) || first < 0) return "";
    int last = first;
    if (!ends.second.empty() && !absl::SimpleAtoi(ends.second, &last)) {
      return "";
    }
    int stride = 1;
    if (!range_and_stride.second.empty() &&
        !absl::SimpleAtoi(range_and_stride.second, &stride)) {
      return "";
    }
    if (last < first || stride < 1) return "";
    const int count = (last - first) / stride + 1;
    std::string place = absl::StrCat("{", first, "}");
    if (count > 1) absl::StrAppend(&place, ":", count);
    if (count > 1 && stride > 1) absl::StrAppend(&place, ":", stride);
    places.push_back(std::move(place));
  }
  return absl::StrJoin(places, ",");
}

std::optional<Unread> UnreadGomp(const std::string& name,
                                 const std::string& value,
                                 const std::set<std::string>& openmp) {
  if (openmp.contains("GNU")) return std::nullopt;
  // LLVM's runtime reads these two.
  if (openmp.contains("LLVM") &&
      (name == "GOMP_CPU_AFFINITY" || name == "GOMP_STACKSIZE")) {
    return std::nullopt;
  }
  std::string instead;
  if (name == "GOMP_SPINCOUNT") {
    instead =
        absl::StrCat("export KMP_BLOCKTIME=", value == "0" ? "0" : "infinite");
  } else if (name == "GOMP_CPU_AFFINITY") {
    const std::string places = PlacesOfCpus(value);
    if (!places.empty()) {
      instead =
          absl::StrCat("export OMP_PROC_BIND=true OMP_PLACES='", places, "'");
    }
  } else if (name == "GOMP_STACKSIZE") {
    instead = absl::StrCat("export OMP_STACKSIZE=", value);
  }
  return Unread{.why = absl::StrCat("the OpenMP runtime is from ",
                                    *openmp.begin(), ", not from GNU"),
                .instead = instead};
}

// Whether no runtime of these families (OpenMpRuntime) reads a KMP_ or GOMP_
// variable. nullopt: one reads it, or no family is known.
std::optional<Unread> UnreadByOpenMp(const std::string& name,
                                     const std::string& value,
                                     const std::set<std::string>& families) {
  if (families.empty()) return std::nullopt;
  return absl::StartsWith(name, "KMP_") ? UnreadKmp(name, value, families)
                                        : UnreadGomp(name, value, families);
}

std::optional<Unread> UnreadByAllocator(const std::string& name,
                                        const std::string& allocator) {
  std::string reader;
  std::string preload;
  if (name == "MALLOC_CONF") {
    reader = "jemalloc";
    preload = "export LD_PRELOAD=libjemalloc.so.2";
  } else if (absl::StartsWith(name, "TCMALLOC_")) {
    reader = "tcmalloc";
    preload = "export LD_PRELOAD=libtcmalloc_minimal.so.4";
  } else if (absl::StartsWith(name, "MALLOC_") && absl::EndsWith(name, "_")) {
    reader = "glibc";
    preload = "unset LD_PRELOAD";
  }
  if (reader.empty() || reader == allocator) return std::nullopt;
  return Unread{.why = absl::StrCat("it is for ", reader,
                                    ", but malloc comes from ", allocator),
                .instead = absl::StrCat("or, to use ", reader, ": ", preload)};
}

Unread UnreadByBlas(const std::string& name, const std::string& value,
                    const std::string& why) {
  return Unread{.why = why,
                .instead = absl::EndsWith(name, "_NUM_THREADS")
                               ? absl::StrCat("export OMP_NUM_THREADS=", value)
                               : ""};
}

std::optional<Unread> UnreadByLibraries(const std::string& name,
                                        const std::string& value,
                                        const Readers& readers) {
  if (absl::StartsWith(name, "KMP_") || absl::StartsWith(name, "GOMP_")) {
    return UnreadByOpenMp(name, value, readers.openmp);
  }
  if (absl::StartsWith(name, "MKL_") && !readers.mkl) {
    return UnreadByBlas(name, value, "MKL was not found");
  }
  if (absl::StartsWith(name, "OPENBLAS_") && !readers.openblas) {
    return UnreadByBlas(name, value, "the BLAS is not OpenBLAS");
  }
  if (absl::StartsWith(name, "XOS_MMM_L_") && !readers.large_pages) {
    return Unread{
        .why =
            "it is for Fujitsu's large page library libmpg, which is not "
            "linked",
        .instead =
            "or, to use it: link with -Klargepage (Fujitsu's compiler), "
            "or export LD_PRELOAD=/opt/FJSVxos/mmm/lib64/libmpg.so.1"};
  }
  return UnreadByAllocator(name, readers.allocator);
}

std::optional<Finding> JudgeVariable(const std::string& name,
                                     const std::string& value,
                                     const Readers& readers) {
  if (absl::StartsWith(name, "HOROVOD_")) {
    return DoesNothing(name, value,
                       {.why = "this is hvdlite, not Horovod",
                        .instead = InsteadOfHorovod(name, value)});
  }
  const std::optional<Unread> unread = UnreadByLibraries(name, value, readers);
  if (!unread.has_value()) return std::nullopt;
  return readers.program.empty() ? DoesNothingInTheDoctor(name, value, *unread)
                                 : DoesNothing(name, value, *unread);
}

// Finds misspelt HVDLITE_* variables and those with invalid values.
std::vector<Finding> JudgeOwn(const base::Environment& environment) {
  const absl::StatusOr<Config> config = LoadConfig(environment);
  if (!config.ok()) {
    return {{.verdict = Verdict::kProblem,
             .seen = std::string(config.status().message()),
             .remedy = "correct or unset it; otherwise init() fails"}};
  }
  std::vector<Finding> findings;
  for (const std::string& warning : config->warnings) {
    // "the environment variable A is not known; did you mean B?"
    findings.push_back({.verdict = Verdict::kWarning,
                        .seen = warning,
                        .remedy = "rename or unset it"});
  }
  return findings;
}

}  // namespace

std::string GnuInsteadOfKmp(const std::string& name, const std::string& value) {
  std::string settings;
  for (const auto& [other, text] :
       support::TranslateKmp(name, value).variables) {
    const char* quote =
        text.find_first_of(" {}") == std::string::npos ? "" : "'";
    absl::StrAppend(&settings, " ", other, "=", quote, text, quote);
  }
  if (!settings.empty()) return absl::StrCat("export", settings);
  if (name == "KMP_ALL_THREADS" || name == "KMP_DEVICE_THREAD_LIMIT") {
    return absl::StrCat("export OMP_THREAD_LIMIT=", value);
  }
  return "";
}

std::vector<Finding> JudgeVariables(const base::Environment& environment,
                                    const Readers& readers) {
  std::vector<Finding> findings = JudgeOwn(environment);
  std::vector<std::string> names = environment.names();
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    std::optional<Finding> finding =
        JudgeVariable(name, environment.get(name).value_or(""), readers);
    if (finding.has_value()) findings.push_back(*std::move(finding));
  }
  if (findings.empty()) {
    findings.push_back({.seen = "no variable that does nothing was found"});
  }
  return findings;
}

absl::StatusOr<Findings> RunVariables(Session& session) {
  Readers readers;
  for (const OpenMpRuntime& runtime : OpenMpRuntimesAmong(session.libraries)) {
    readers.openmp.insert(runtime.family);
  }
  for (const support::Library& library : session.libraries) {
    // LibTorch's own releases contain MKL.
    readers.mkl |= absl::StartsWith(library.name, "libmkl_") ||
                   (session.blas.facts.file.empty() &&
                    absl::StartsWith(library.name, "libtorch"));
    readers.openblas |= absl::StartsWith(library.name, "libopenblas");
  }
  readers.mkl |= session.blas.facts.kind == "MKL";
  readers.openblas |= session.blas.facts.kind == "OpenBLAS";
  readers.allocator = AllocatorOf(session.libraries);
  readers.large_pages = support::HasLargePageLibrary(session.libraries);
  readers.program = session.program;
  return JudgeVariables(session.environment, readers);
}

}  // namespace hvdlite::doctor
