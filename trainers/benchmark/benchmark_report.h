// Timing of a benchmark, the lines that it prints, and the report of one run,
// with the fields of Mila's training benchmarks (github.com/mila-iqia/training,
// milabench/perf/arguments.py).
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "support/machine.h"
#include "support/statistics.h"

namespace hvdlite::trainers {

// A plan of `repeat` observations, each of which times `number` batches. The
// defaults are those of Mila's training benchmarks
// (github.com/mila-iqia/training).
struct ObservationPlan {
  int64_t repeat = 100;
  int64_t number = 10;
  int64_t skip = 10;  // first observations to skip, less than `repeat`
  int64_t batch_size =
      1;  // items per batch, over all ranks that train together

  // Items per observation.
  int64_t items() const { return number * batch_size; }
};

// Throws an InputError that names the flag if a number is out of range: `skip`
// must be from 0 to `repeat` - 1, the others positive.
void RequireValid(const ObservationPlan& plan);

// Records the times and losses of a benchmark. One thread uses it:
//
//   while (!recorder.done()) {
//     recorder.BeginObservation();
//     while (!recorder.AddBatch(TrainBatch())) {}
//   }
//
// The time between observations is not counted.
class BenchmarkRecorder {
 public:
  // The number of losses to keep, as in Mila's benchmarks.
  static constexpr int64_t kKeptLosses = 100;

  // Throws InputError for an invalid plan. `clock` returns seconds.
  explicit BenchmarkRecorder(
      const ObservationPlan& plan,
      std::function<double()> clock = support::WallSeconds);

  // Starts the clock of an observation. Throws std::logic_error within an
  // observation and when done.
  void BeginObservation();

  // Adds a batch with this loss. After the observation's last batch it stops
  // the clock and returns true. Throws std::logic_error outside of an
  // observation.
  bool AddBatch(double loss);

  // True if all observations are complete.
  bool done() const { return observations_ == plan_.repeat; }

  const ObservationPlan& plan() const { return plan_; }

  // The seconds of each observation so far, without skipped ones.
  const std::vector<double>& observation_seconds() const { return seconds_; }

  // Summary of observation_seconds(); all zero if there are none.
  support::Summary train_seconds() const;

  // The last kKeptLosses losses, including those of skipped observations.
  std::vector<double> batch_losses() const;

  // The first batch, counted from 0, whose loss was NaN or infinite.
  std::optional<int64_t> first_non_finite_batch() const {
    return first_non_finite_batch_;
  }

 private:
  ObservationPlan plan_;
  std::function<double()> clock_;
  std::optional<double> start_seconds_;  // of the current observation
  int64_t observations_ = 0;             // complete ones
  int64_t batches_ = 0;                  // in all observations
  std::vector<double> seconds_;          // without skipped observations
  std::deque<double> losses_;
  std::optional<int64_t> first_non_finite_batch_;
};

using ArgumentValue = std::variant<bool, int64_t, double, std::string>;
// A program's flags by name; "--batch-size" is "batch_size".
using Arguments = std::map<std::string, ArgumentValue>;

struct BenchmarkReport {
  std::string name;      // benchmark: letters, digits, "_", "-" and "."
  std::string arch;      // model
  std::string version;   // program; only equal versions are comparable
  int64_t instance = 0;  // index among simultaneous runs; jr_id and vcd
  int64_t devices = 1;   // ranks that train together
  support::MachineFacts host;
  Arguments arguments;

  ObservationPlan plan;
  support::Summary train_seconds;  // per observation; empty if none is complete
  std::vector<double> batch_losses;  // the last ones
  std::optional<int64_t>
      first_non_finite_batch;  // counted from 0; the run failed
};

// Returns what `recorder` has recorded. The caller adds names, host and
// arguments.
BenchmarkReport ReportOf(const BenchmarkRecorder& recorder);

// A hash of 16 hexadecimal digits that is equal for runs with comparable
// results. It covers name, arch, repeat, number and the arguments, except those
// that depend on the machine (batch size, threads, workers, paths) and the
// seed. It is base::Fnv1a; Mila's benchmarks use SHA-256.
std::string UniqueId(const BenchmarkReport& report);

enum class BenchmarkStatus {
  kPassed,
  // A loss was NaN or infinite, or observations are missing.
  kFailed,
};

// Appends `report` to the list in the file `output` if that name ends in
// ".json"; otherwise to NAME.json in the directory `output`, which is created
// if necessary. Also appends a line to summary.txt in the same directory.
// Throws an InputError that names the file if it cannot be written or holds no
// list. Only one process may write to a directory at a time.
[[nodiscard]] BenchmarkStatus WriteBenchmarkReport(
    const std::filesystem::path& output, const BenchmarkReport& report);

// The functions below print throughput as tf_cnn_benchmarks and Horovod's
// synthetic benchmark do, for tools that read their output. No line ends with a
// newline.

// Images per second over some steps.
struct StepSpeed {
  double mean = 0;         // batch size / mean time
  double uncertainty = 0;  // standard error of the steps' speeds
  double jitter = 0;       // of the steps' speeds
};

// Needs at least one step (else std::invalid_argument). `batch_size` is the
// number of images per step on all ranks; the times must be positive. See
// tf_cnn_benchmarks/benchmark_cnn.py, get_perf_timing.
StepSpeed StepSpeedOf(int64_t batch_size,
                      const std::vector<double>& step_seconds);

// tf_cnn_benchmarks: the header above the lines of steps.
std::string StepHeader();

// tf_cnn_benchmarks: the line of a step, counted from 1. `speed` covers the
// steps so far.
std::string StepLine(int64_t step, const StepSpeed& speed, double loss);

// tf_cnn_benchmarks: the last three lines, with the speed between dashes.
std::string TotalBlock(double images_per_second);

// Horovod, examples/pytorch/pytorch_synthetic_benchmark.py: the line of an
// iteration, counted from 0, with the speed of one rank.
std::string IterationLine(int64_t iteration, double images_per_second);

// Horovod: the mean speed of one rank over its iterations, +- 1.96 times their
// population standard deviation. Needs at least one iteration (else
// std::invalid_argument).
std::string RankSpeedLine(const std::vector<double>& images_per_second);

// Horovod: the numbers of RankSpeedLine times `ranks`.
std::string TotalSpeedLine(int ranks,
                           const std::vector<double>& images_per_second);

}  // namespace hvdlite::trainers
