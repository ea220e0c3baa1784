// The summary that --report writes, and its parts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/html_page.h"
#include "support/machine.h"

namespace hvdlite::trainers {

// Measures speed and loss of training, interval by interval, on this rank only.
// The clock runs from Start() to Finish(). Time that is excluded, such as
// evaluations and checkpoints, does not count. Intervals without a step are
// omitted.
class IntervalMeter {
 public:
  explicit IntervalMeter(std::function<double()> clock = support::WallSeconds)
      : clock_(std::move(clock)) {}

  void Start();
  void AddStep(int64_t items, double loss);
  // Excludes so many seconds of the interval, such as a checkpoint.
  void LeaveOut(double seconds) { left_out_seconds_ += seconds; }
  // Ends the interval; Start() begins the next one.
  void Finish();

  // Results of the finished intervals.
  const std::vector<double>& items_per_second() const { return speeds_; }
  const std::vector<double>& losses() const { return losses_; }  // means
  double seconds() const { return seconds_; }
  // Wall-clock and CPU time from Start() to Finish(), including excluded time.
  double wall_seconds() const { return wall_seconds_; }
  const support::CpuSeconds& cpu_seconds() const { return cpu_seconds_; }

  // The current interval.
  int64_t interval_steps() const { return interval_steps_; }

  // Replaces the last interval's loss by its mean over the ranks.
  void SetLastLoss(double loss) { losses_.back() = loss; }

 private:
  const std::function<double()> clock_;  // in seconds
  double start_ = 0;
  int64_t interval_steps_ = 0;
  int64_t interval_items_ = 0;
  double interval_loss_ = 0;  // sum over the steps
  std::vector<double> speeds_;
  std::vector<double> losses_;
  double left_out_seconds_ = 0;
  double seconds_ = 0;
  double wall_seconds_ = 0;
  support::CpuSeconds cpu_start_;
  support::CpuSeconds cpu_seconds_;
};

// The quality of a model on items that it was not trained on.
struct Evaluation {
  double loss = 0;         // mean cross entropy
  double accuracy = 0;     // share of correctly classified items
  int64_t items = 0;       // classified items
  int64_t unreadable = 0;  // skipped items
};

struct Report {
  std::string program;
  std::string settings;           // the flags, as JSON
  std::string items = "images";   // the unit of speeds and evaluations
  support::Properties data = {};  // how the data is transformed
  int world_size = 1;
  int threads_per_rank = 1;  // computing threads
  int64_t first_step = 0;    // steps done before --resume
  int64_t steps = 0;         // steps of this run, without first_step
  double seconds = 0;        // training time without evaluation and checkpoints
  // Sum over all ranks, for each interval.
  std::vector<double> items_per_second;
  // Mean training loss over all ranks, for each interval. With --no-sync and
  // --barrier-only: rank 0's.
  std::vector<double> losses;
  // How many unreadable items were replaced by others; empty where an
  // unreadable item is an error.
  std::optional<int64_t> replaced = {};
  std::optional<Evaluation> evaluation;    // the last one
  std::vector<double> accuracies;          // of all evaluations
  std::vector<double> test_losses = {};    // of all evaluations
  std::vector<int64_t> parameter_digests;  // by rank
  // The machine of rank 0, versions, and the CPU use of other programs.
  support::Properties machine = {};
};

// Writes `report` as JSON. Throws an InputError that names the file on failure.
void WriteReport(const std::string& file, const Report& report);

// Writes results, curves (losses, accuracy, speed), settings and machine as one
// self-contained HTML page. Throws an InputError that names the file on
// failure.
void WriteHtmlReport(const std::string& file, const Report& report);

// Formats a digest as 16 hexadecimal digits.
std::string FormatDigest(int64_t digest);

}  // namespace hvdlite::trainers
