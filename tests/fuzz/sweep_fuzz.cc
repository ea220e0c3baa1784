// What scaling_sweep reads: SPECs, results and lines of them, and programs'
// reports; and what scale_sim reads: files of gradients, tables of epochs and
// of sweeps.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "tests/fuzz/fuzz_input.h"
#include "tools/scale_sim/epoch_table.h"
#include "tools/scale_sim/sweep_table.h"
#include "tools/scale_sim/workload.h"
#include "tools/scaling_sweep/run/configuration.h"
#include "tools/scaling_sweep/run/program_report.h"
#include "tools/scaling_sweep/run/results.h"
#include "tools/scaling_sweep/run/spec.h"

namespace hvdlite::fuzz {
namespace {

void CheckTable(const absl::StatusOr<scale_sim::EpochTable>& table) {
  if (!table.ok()) {
    FUZZ_CHECK(!table.status().message().empty());
    return;
  }
  FUZZ_CHECK(table->images > 0 && table->cores_per_node > 0);
  FUZZ_CHECK(std::is_sorted(table->nodes.begin(), table->nodes.end()));
  for (const scale_sim::EpochColumn& column : table->columns) {
    FUZZ_CHECK(column.ranks_per_node > 0);
    FUZZ_CHECK(column.epoch_seconds.size() == table->nodes.size());
    for (const double seconds : column.epoch_seconds) {
      FUZZ_CHECK(seconds > 0 && std::isfinite(seconds));
    }
  }
}

void Run(FuzzInput input) {
  static const FuzzFolder folder;
  const int kind = input.Below(7);
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
    const std::string path = folder.Write("report.json", text);
    const auto report = scaling_sweep::ReadProgramReport(path, "images", 2);
    if (!report.ok()) {
      FUZZ_CHECK(std::string(report.status().message()).find(path) !=
                 std::string::npos);
    }
  } else if (kind == 3) {
    folder.Write(scaling_sweep::kResultsName, text + "\n");
    const auto results = scaling_sweep::ReadResults(folder / "");
    if (results.ok()) {
      FUZZ_CHECK(scaling_sweep::Configurations(results->spec).ok());
    } else {
      FUZZ_CHECK(!results.status().message().empty());
    }
  } else if (kind == 5) {
    CheckTable(scale_sim::ParseEpochTable(text));
  } else if (kind == 6) {
    CheckTable(scale_sim::ParseSweepTable(text, {.batch_per_rank = 32}));
  } else {
    const auto gradients = scale_sim::ParseGradientSet(text);
    if (!gradients.ok()) return;
    FUZZ_CHECK(gradients->total_bytes() > 0);
    FUZZ_CHECK(gradients->ready_fraction.back() == 1);
    for (const double fraction : gradients->ready_fraction) {
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
