// Inputs of scaling_sweep (spec files, results and lines of them, reports of
// programs) and of scale_sim (files of gradients).
#include <cstdint>
#include <string>

#include "tests/fuzz/fuzz_input.h"
#include "tools/scale_sim/workload.h"
#include "tools/scaling_sweep/run/configuration.h"
#include "tools/scaling_sweep/run/program_report.h"
#include "tools/scaling_sweep/run/results.h"
#include "tools/scaling_sweep/run/spec.h"

namespace hvdlite::fuzz {
namespace {

void Run(FuzzInput input) {
  static const FuzzDirectory directory;
  const int kind = input.Below(5);
  const std::string text(input.Rest());
  if (kind == 0) {
    const auto spec = scaling_sweep::ParseSpec(text, "SPEC");
    if (!spec.ok()) {
      FUZZ_CHECK(!spec.status().message().empty());
      return;
    }
    FUZZ_CHECK(scaling_sweep::CheckSpec(*spec).ok());
    FUZZ_CHECK(!scaling_sweep::Identity(*spec).empty());
  } else if (kind == 1) {
    const auto sample = scaling_sweep::ParseSample(text);
    if (!sample.ok()) return;
    const auto again =
        scaling_sweep::ParseSample(scaling_sweep::ToJsonLine(*sample));
    FUZZ_CHECK(again.ok());
    FUZZ_CHECK(*again == *sample);
  } else if (kind == 2) {
    const std::string path = directory.Write("report.json", text);
    const auto report = scaling_sweep::ReadProgramReport(path, "images", 2);
    if (!report.ok()) {
      FUZZ_CHECK(std::string(report.status().message()).find(path) !=
                 std::string::npos);
    }
  } else if (kind == 3) {
    directory.Write(scaling_sweep::kResultsName, text + "\n");
    const auto results = scaling_sweep::ReadResults(directory / "");
    if (results.ok()) {
      FUZZ_CHECK(scaling_sweep::Configurations(results->spec).ok());
    } else {
      FUZZ_CHECK(!results.status().message().empty());
    }
  } else {
    const auto workload = scale_sim::ParseGradients(text);
    if (!workload.ok()) return;
    FUZZ_CHECK(workload->requests.size() == workload->ready_fraction.size());
    FUZZ_CHECK(workload->ready_fraction.back() == 1);
    for (const double fraction : workload->ready_fraction) {
      FUZZ_CHECK(fraction >= 0 && fraction <= 1 + 1e-9);
    }
  }
}

}  // namespace
}  // namespace hvdlite::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hvdlite::fuzz::Run(hvdlite::fuzz::FuzzInput(data, size));
  return 0;
}
