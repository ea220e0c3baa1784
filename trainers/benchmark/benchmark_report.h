// How a benchmark is timed, what it prints meanwhile, and the report of one
// run, with the fields of Mila's training benchmarks
// (github.com/mila-iqia/training, milabench/perf/arguments.py).
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

// `repeat` observations, each the time of `number` batches, as in Mila's
// training benchmarks (github.com/mila-iqia/training), whose defaults these
// are.
struct ObservationPlan {
  int64_t repeat = 100;
  int64_t number = 10;
  int64_t skip = 10;       // first observations left out, fewer than `repeat`
  int64_t batch_size = 1;  // items of a batch, of all ranks that train together

  // Of one observation.
  int64_t items() const { return number * batch_size; }
};

// Throws InputError that names the flag unless `skip` observations can be left
// out and the other numbers are positive.
void RequireValid(const ObservationPlan& plan);

// The times and losses of a benchmark.
//
// Fed by the loop that trains, on one thread:
//
//   while (!recorder.done()) {
//     recorder.BeginObservation();
//     while (!recorder.AddBatch(TrainBatch())) {}
//   }
//
// What is done between observations is not timed.
class BenchmarkRecorder {
 public:
  // Losses that are kept, as many as the suite keeps.
  static constexpr int64_t kKeptLosses = 100;

  // Throws InputError for an invalid plan. `clock` returns seconds.
  explicit BenchmarkRecorder(
      const ObservationPlan& plan,
      std::function<double()> clock = support::WallSeconds);

  // Starts the observation's time. Throws std::logic_error within an
  // observation and when done.
  void BeginObservation();

  // The batch is computed, with this loss. Returns true, and stops the time,
  // after the observation's last batch. Throws std::logic_error outside of an
  // observation.
  bool AddBatch(double loss);

  // Whether all observations have been made.
  bool done() const { return observations_ == plan_.repeat; }

  const ObservationPlan& plan() const { return plan_; }

  // Seconds of each observation so far, less those left out.
  const std::vector<double>& observation_seconds() const { return seconds_; }

  // Of observation_seconds(); all zero if there are none.
  support::Summary train_seconds() const;

  // The last kKeptLosses, those of observations left out included.
  std::vector<double> batch_losses() const;

  // The first batch, counted from 0, whose loss was NaN or infinite.
  std::optional<int64_t> first_non_finite_batch() const {
    return first_non_finite_batch_;
  }

 private:
  ObservationPlan plan_;
  std::function<double()> clock_;
  std::optional<double> start_seconds_;  // of the current observation
  int64_t observations_ = 0;             // ended
  int64_t batches_ = 0;                  // of all observations
  std::vector<double> seconds_;          // of observations not left out
  std::deque<double> losses_;
  std::optional<int64_t> first_non_finite_batch_;
};

using ArgumentValue = std::variant<bool, int64_t, double, std::string>;
// A program's flags by name, without "--" and with "_" for "-".
using Arguments = std::map<std::string, ArgumentValue>;

struct BenchmarkReport {
  std::string name;     // of the benchmark: letters, digits, "_", "-" and "."
  std::string arch;     // of the model
  std::string version;  // of the program; runs of different ones do not compare
  int64_t instance = 0;  // of those that run at the same time; jr_id and vcd
  int64_t devices = 1;   // ranks that train together
  support::MachineFacts host;
  Arguments arguments;

  ObservationPlan plan;
  support::Summary train_seconds;    // of an observation; none if none ended
  std::vector<double> batch_losses;  // the last ones
  std::optional<int64_t> first_non_finite_batch;  // from 0; a failure if any
};

// What `recorder` has recorded; names, host and arguments are left to the
// caller.
BenchmarkReport ReportOf(const BenchmarkRecorder& recorder);

// 16 hexadecimal digits, the same for runs whose results compare: a hash of
// name, arch, repeat, number and the arguments, less those that a machine may
// choose for itself (batch size, threads, workers, paths and the seed);
// base::Fnv1a, where the suite has SHA-256.
std::string UniqueId(const BenchmarkReport& report);

enum class BenchmarkStatus {
  kPassed,
  // A loss was NaN or infinite, or observations are missing.
  kFailed,
};

// Appends `report` to the list in the file `output`, if that ends in ".json",
// or in the file NAME.json of the folder `output`, which is made if need be. A
// line is appended to summary.txt beside it. Throws InputError naming the file
// if one cannot be written or holds no list. At most one process writes to a
// folder at a time.
[[nodiscard]] BenchmarkStatus WriteBenchmarkReport(
    const std::filesystem::path& output, const BenchmarkReport& report);

// What follows is throughput as tf_cnn_benchmarks and Horovod's synthetic
// benchmark print it, for tools that read their output. No line ends with a
// newline.

// Images a second over some steps.
struct StepSpeed {
  double mean = 0;         // batch size / mean time
  double uncertainty = 0;  // standard error of the steps' speeds
  double jitter = 0;       // of the steps' speeds
};

// Of at least one step (std::invalid_argument). `batch_size` is the number of
// images of a step on all ranks; the times are positive.
// tf_cnn_benchmarks/benchmark_cnn.py, get_perf_timing.
StepSpeed StepSpeedOf(int64_t batch_size,
                      const std::vector<double>& step_seconds);

// tf_cnn_benchmarks: the header of the steps' lines.
std::string StepHeader();

// tf_cnn_benchmarks: the line of a step, counted from 1; `speed` is that of the
// steps so far.
std::string StepLine(int64_t step, const StepSpeed& speed, double loss);

// tf_cnn_benchmarks: the last three lines, the speed between dashes.
std::string TotalBlock(double images_per_second);

// Horovod, examples/pytorch/pytorch_synthetic_benchmark.py: the line of an
// iteration, counted from 0, with the speed of one rank.
std::string IterationLine(int64_t iteration, double images_per_second);

// Horovod: the speed of one rank from that of its iterations, of which there is
// at least one (std::invalid_argument), +- 1.96 of their population's standard
// deviation.
std::string RankSpeedLine(const std::vector<double>& images_per_second);

// Horovod: RankSpeedLine's numbers times `ranks`.
std::string TotalSpeedLine(int ranks,
                           const std::vector<double>& images_per_second);

}  // namespace hvdlite::trainers
