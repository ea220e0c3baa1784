// The summary that --report writes, and what it is made of.
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

// Speed and loss of training, interval by interval.
//
// Measures this rank alone. The clock runs from Start() to Finish(), less what
// is left out, so that evaluations and checkpoints do not count. Intervals
// without a step are left out.
class IntervalMeter {
 public:
  explicit IntervalMeter(std::function<double()> clock = support::WallSeconds)
      : clock_(std::move(clock)) {}

  void Start();
  void AddStep(int64_t items, double loss);
  // So much of the interval was something else: a checkpoint.
  void LeaveOut(double seconds) { left_out_seconds_ += seconds; }
  // Ends the interval; Start() begins the next one.
  void Finish();

  // Of the finished intervals.
  const std::vector<double>& items_per_second() const { return speeds_; }
  const std::vector<double>& losses() const { return losses_; }  // means
  double seconds() const { return seconds_; }
  // From Start() to Finish(), with what is left out: by the clock, and of CPUs.
  double wall_seconds() const { return wall_seconds_; }
  const support::CpuSeconds& cpu_seconds() const { return cpu_seconds_; }

  // Of the current interval.
  int64_t interval_steps() const { return interval_steps_; }

  // Replaces the last interval's loss, by its mean over the ranks.
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

// How well a model does on items that it was not trained on.
struct Evaluation {
  double loss = 0;         // mean cross entropy
  double accuracy = 0;     // share of items whose class is the most likely one
  int64_t items = 0;       // how many were classified
  int64_t unreadable = 0;  // left out
};

struct Report {
  std::string program;
  std::string settings;           // the flags, as JSON
  std::string items = "images";   // what speeds and evaluations count
  support::Properties data = {};  // what is done to them
  int world_size = 1;
  int threads_per_rank = 1;  // that compute
  int64_t first_step = 0;    // done before --resume
  int64_t steps = 0;         // of this run, without those before --resume
  double seconds = 0;        // of training, without evaluation and checkpoints
  // Of all ranks together, for each interval.
  std::vector<double> items_per_second;
  // Mean training loss of each interval over all ranks (rank 0's with
  // --no-sync and --barrier-only).
  std::vector<double> losses;
  // How often an item that could not be read had another in its place, where
  // that is no error.
  std::optional<int64_t> replaced = {};
  std::optional<Evaluation> evaluation;    // the last one
  std::vector<double> accuracies;          // of all evaluations
  std::vector<double> test_losses = {};    // the same
  std::vector<int64_t> parameter_digests;  // by rank
  // Where it ran: rank 0's machine, versions, what other programs took.
  support::Properties machine = {};
};

// Writes `report` as JSON. Throws InputError naming the file if it cannot.
void WriteReport(const std::string& file, const Report& report);

// Writes results, curves (losses, accuracy, speed), settings and machine as a
// page for browsers that needs no other file. Throws InputError naming the file
// if it cannot.
void WriteHtmlReport(const std::string& file, const Report& report);

// A digest as people compare it: 16 hexadecimal digits.
std::string FormatDigest(int64_t digest);

}  // namespace hvdlite::trainers
