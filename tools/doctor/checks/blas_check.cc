#include <filesystem>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "support/machine.h"
#include "support/processor.h"
#include "tools/doctor/check.h"
#include "tools/doctor/checks/core_peak.h"
#include "tools/doctor/checks/software_checks.h"

namespace hvdlite::doctor {
namespace {

std::string Describe(const BlasFacts& facts) {
  std::string text = facts.kind == "reference" ? "the reference BLAS"
                     : facts.kind == "unknown" ? "an unknown BLAS"
                                               : facts.kind;
  if (!facts.version.empty()) absl::StrAppend(&text, " ", facts.version);
  if (!facts.core.empty()) {
    absl::StrAppend(&text, ", kernels for ", facts.core);
  }
  if (!facts.threads.empty()) {
    absl::StrAppend(&text, ", threads: ", facts.threads);
  }
  return absl::StrCat(text, ", in ", facts.file);
}

bool IsFujitsus(const BlasEnvironment& around) {
  return around.cpu_implementer == "0x46";
}

// OpenBLAS uses generic Armv8 kernels on a processor with SVE.
bool LeavesSveUnused(const BlasFacts& facts, const BlasEnvironment& around) {
  return absl::EqualsIgnoreCase(facts.core, "armv8") &&
         around.cpu_flags.contains("sve");
}

std::string SveRemedy(const BlasFacts& facts, const BlasEnvironment& around) {
  if (!facts.own_core.empty() &&
      !absl::EqualsIgnoreCase(facts.own_core, "armv8")) {
    return "unset OPENBLAS_CORETYPE";
  }
  for (const char* core : {"A64FX", "ARMV8SVE"}) {
    const bool fits = IsFujitsus(around) || core != std::string("A64FX");
    if (fits && absl::c_linear_search(facts.sve_cores, core)) {
      return absl::StrCat("export OPENBLAS_CORETYPE=", core);
    }
  }
  return absl::StrCat(
      "install OpenBLAS 0.3.25 or newer, which selects its SVE kernels itself "
      "(OPENBLAS_CORETYPE does not help: this OpenBLAS has no SVE kernels)",
      IsFujitsus(around) ? ", or link Fujitsu's SSL II" : "");
}

// The command that replaces the reference BLAS in `file`.
std::string ReferenceBlasRemedy(const std::string& file,
                                const std::string& library_path) {
  const std::string directory = std::filesystem::path(file).parent_path();
  std::vector<std::string> kept;
  bool named = false;
  for (const absl::string_view view :
       absl::StrSplit(library_path, ':', absl::SkipEmpty())) {
    const std::string entry(view);
    std::error_code error;
    if (entry == directory ||
        std::filesystem::equivalent(entry, directory, error)) {
      named = true;
    } else {
      kept.push_back(entry);
    }
  }
  if (named) {
    if (kept.empty()) return "unset LD_LIBRARY_PATH";
    std::string rest;
    for (const std::string& entry : kept) {
      absl::StrAppend(&rest, rest.empty() ? "" : ":", entry);
    }
    return absl::StrCat("export LD_LIBRARY_PATH=", rest);
  }
  // Debian: /usr/lib/x86_64-linux-gnu/blas/libblas.so.3.11.0
  const std::filesystem::path parent(directory);
  if (parent.filename() == "blas" &&
      parent.parent_path().parent_path() == "/usr/lib") {
    return absl::StrCat(
        "apt-get install libopenblas0-openmp && update-alternatives --auto "
        "libblas.so.3-",
        parent.parent_path().filename().string());
  }
  return "install OpenBLAS with OpenMP threads and add its directory to "
         "LD_LIBRARY_PATH";
}

}  // namespace

Finding JudgeBlas(const BlasFacts& facts, const BlasEnvironment& around) {
  if (facts.file.empty()) {
    if (!around.program.empty()) {
      return {.verdict = Verdict::kNote,
              .seen = absl::StrCat("no BLAS among the libraries of ",
                                   around.program, " (", facts.error,
                                   "): LibTorch may contain one")};
    }
    return {.verdict = Verdict::kWarning,
            .seen = absl::StrCat("no BLAS was found: ", facts.error),
            .remedy =
                "apt-get install libopenblas0-openmp; or, if your program "
                "contains a BLAS: hvdlite_doctor --program YOUR_PROGRAM"};
  }
  Finding finding = {.seen = Describe(facts)};
  if (facts.kind == "reference") {
    finding.verdict = Verdict::kProblem;
    absl::StrAppend(&finding.seen,
                    ": 10 to 20 times slower than an optimized BLAS");
    finding.remedy = ReferenceBlasRemedy(facts.file, around.library_path);
    return finding;
  }
  // OPENBLAS_CORETYPE may select slower kernels than OpenBLAS itself would.
  const std::string own = facts.own_core.empty() ? facts.core : facts.own_core;
  const std::string better = support::BetterOpenBlasCore(own, around.cpu_flags);
  const int floats = support::FloatsOfOpenBlasCore(facts.core);
  const int best = support::FloatsOfOpenBlasCore(better.empty() ? own : better);
  // Processors with AVX-512 have two units for vectors of half the length. Some
  // use these two units for one long vector.
  if (!around.asked_core.empty() && floats < best &&
      around.floats_per_cycle > 0 && around.floats_per_cycle <= 2 * floats) {
    finding.verdict = Verdict::kNote;
    absl::StrAppend(&finding.seen, ": OPENBLAS_CORETYPE=", around.asked_core,
                    " selects them; they use vectors of ", floats,
                    " floats, not ", best,
                    ", but this processor is equally fast with both");
    return finding;
  }
  if (!around.asked_core.empty() && floats < best) {
    finding.verdict = Verdict::kProblem;
    absl::StrAppend(&finding.seen, ": OPENBLAS_CORETYPE=", around.asked_core,
                    " selects them, and they compute with ", floats,
                    " floats at a time; this processor can compute with ",
                    best);
    finding.remedy = better.empty()
                         ? "unset OPENBLAS_CORETYPE"
                         : absl::StrCat("export OPENBLAS_CORETYPE=", better);
    return finding;
  }
  if (around.asked_core.empty() && !better.empty()) {
    finding.verdict = Verdict::kProblem;
    absl::StrAppend(
        &finding.seen,
        ": OpenBLAS does not know this processor and chose kernels for an "
        "older one");
    finding.remedy = absl::StrCat("export OPENBLAS_CORETYPE=", better);
    return finding;
  }
  if (LeavesSveUnused(facts, around)) {
    // The vectors of A64FX are four times as long as those of these kernels.
    // Other processors have shorter vectors and more units.
    finding.verdict = IsFujitsus(around) ? Verdict::kProblem : Verdict::kNote;
    absl::StrAppend(
        &finding.seen,
        ": these kernels do not use the SVE vectors of this processor");
    finding.remedy = SveRemedy(facts, around);
    return finding;
  }
  if (facts.threads == "pthreads" && around.openmp) {
    finding.verdict = Verdict::kWarning;
    absl::StrAppend(
        &finding.seen,
        ": it starts its own threads in addition to OpenMP's threads");
    finding.remedy =
        "apt-get install libopenblas0-openmp (or, if matrices are small: "
        "export OPENBLAS_NUM_THREADS=1)";
  } else if (facts.threads == "none") {
    finding.verdict = Verdict::kNote;
    absl::StrAppend(&finding.seen, ": a matrix product uses only one thread");
    finding.remedy = "apt-get install libopenblas0-openmp";
  }
  return finding;
}

Finding BlasFindingOf(const Session& session) {
  const std::string asked =
      session.environment.get("OPENBLAS_CORETYPE").value_or("");
  CorePeak peak;
  if (!asked.empty()) peak = MeasureCorePeak();
  const std::string cpuinfo = session.files.Text("/proc/cpuinfo").value_or("");
  return JudgeBlas(
      session.blas.facts,
      {.cpu_flags = support::CpuFlags(cpuinfo),
       .cpu_implementer = support::ValueOf(cpuinfo, "CPU implementer"),
       .library_path = session.environment.get("LD_LIBRARY_PATH").value_or(""),
       .asked_core = asked,
       .floats_per_cycle = peak.ghz > 0 ? peak.lanes * peak.units : 0,
       .openmp = !OpenMpRuntimesAmong(session.libraries).empty(),
       .program = session.program});
}

absl::StatusOr<Findings> RunBlas(Session& session) {
  return Findings{BlasFindingOf(session)};
}

}  // namespace hvdlite::doctor
