// What scaling_sweep reads: SPECs, lines of results, and programs' reports.
#include <cstdint>
#include <string>

#include "tests/fuzz/fuzz_input.h"
#include "tools/scaling_sweep/run/results.h"
#include "tools/scaling_sweep/run/spec.h"

namespace hvdlite::fuzz {
namespace {

void Run(FuzzInput input) {
  static const FuzzFolder folder;
  const int kind = input.Below(3);
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
  } else {
    const std::string path = folder.Write("report.json", text);
    const auto report = scaling_sweep::ReadProgramReport(path, "images", 2);
    if (!report.ok()) {
      FUZZ_CHECK(std::string(report.status().message()).find(path) !=
                 std::string::npos);
    }
  }
}

}  // namespace
}  // namespace hvdlite::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hvdlite::fuzz::Run(hvdlite::fuzz::FuzzInput(data, size));
  return 0;
}
