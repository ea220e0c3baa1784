// The summary that --report writes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainers/evaluation.h"

namespace hvdlite::trainers {

struct Statistics {
  double mean = 0;
  double median = 0;
  double min = 0;
  double max = 0;
};

// Of at least one value; zeros for none.
Statistics Summarise(const std::vector<double>& values);

struct Report {
  std::string program;
  std::string settings;          // the flags, as JSON
  std::string items = "images";  // what speeds and evaluations count
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
  std::optional<Evaluation> evaluation;    // the last one
  std::vector<double> accuracies;          // of all evaluations
  std::vector<int64_t> parameter_digests;  // by rank
};

// Writes `report` as JSON. Throws InputError naming the file if it cannot.
void WriteReport(const std::string& file, const Report& report);

// Writes its curves (loss, accuracy, speed) as a page for browsers that needs
// no other file. Throws InputError naming the file if it cannot.
void WriteHtmlReport(const std::string& file, const Report& report);

// A digest as people compare it: 16 hexadecimal digits.
std::string FormatDigest(int64_t digest);

}  // namespace hvdlite::trainers
