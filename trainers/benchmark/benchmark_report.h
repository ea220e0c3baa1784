// The report of one run of a benchmark, with the fields of Mila's training
// benchmarks (github.com/mila-iqia/training, milabench/perf/arguments.py).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tools/support/host.h"
#include "tools/support/sample_statistics.h"
#include "trainers/benchmark/benchmark_recorder.h"
#include "trainers/benchmark/observation_plan.h"

namespace hvdlite::trainers {

using ArgumentValue = std::variant<bool, int64_t, double, std::string>;
// A program's flags by name, without "--" and with "_" for "-".
using Arguments = std::map<std::string, ArgumentValue>;

struct BenchmarkReport {
  std::string name;     // of the benchmark: letters, digits, "_", "-" and "."
  std::string arch;     // of the model
  std::string version;  // of the program; runs of different ones do not compare
  std::string vcd = "0";  // the devices that the run was given
  Host host;
  Arguments arguments;

  ObservationPlan plan;
  SampleStatistics train_seconds;    // of an observation; count 0 if none ended
  std::vector<double> batch_losses;  // the last ones
  std::optional<int64_t> first_non_finite_batch;  // from 0; a failure if any
};

// What `recorder` has recorded; names, host and arguments are left to the
// caller.
BenchmarkReport ReportOf(const BenchmarkRecorder& recorder);

// 16 hexadecimal digits, the same for runs whose results compare: a hash of
// name, arch, repeat, number and the arguments, less those that a machine may
// choose for itself (batch size, threads, workers, paths and the seed). FNV-1a
// of 64 bits (Fowler, Noll and Vo); the suite has SHA-256.
std::string UniqueId(const BenchmarkReport& report);

enum class BenchmarkStatus {
  kPassed,
  // A loss was NaN or infinite, or no observation was made; the program exits
  // with 1.
  kFailed,
};

// Appends `report` to the list in the file `output`, if that ends in ".json",
// or in the file NAME.json of the folder `output`, which is made if need be. A
// line is appended to summary.txt beside it. Throws InputError naming the file
// if one cannot be written or holds no list. At most one process writes to a
// folder at a time.
[[nodiscard]] BenchmarkStatus WriteBenchmarkReport(
    const std::filesystem::path& output, const BenchmarkReport& report);

}  // namespace hvdlite::trainers
