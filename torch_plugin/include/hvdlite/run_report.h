// The report of a run: what scaling_sweep reads of a program's speed.
#pragma once

#include <string>
#include <vector>

namespace hvdlite {

struct RunReport {
  // Of all ranks together; above 0.
  double items_per_second = 0;
  // What they are, in letters, digits and '_': "images".
  std::string items = "items";
  // The same of each interval of the run, as an epoch. Where there are any,
  // scaling_sweep takes their median, without those that warm up
  // (warmup_intervals in its SPEC), instead of `items_per_second`.
  std::vector<double> intervals = {};
  // That compute on a rank; 0: those that LibTorch has now.
  int threads_per_rank = 0;
};

// Writes `report` as JSON on rank 0, with its host and the versions of hvdlite,
// LibTorch, MPI and UCX; other ranks return at once. Not collective; after
// init() and before shutdown(). The file holds what it held before or all of
// the new, whatever happens meanwhile. Throws c10::Error on rank 0 that names
// the file if it cannot be written, and on all ranks for numbers and names that
// cannot be.
//
//   hvdlite::write_run_report(
//       path, {.items_per_second = images / seconds, .items = "images"});
void write_run_report(const std::string& path, const RunReport& report);

}  // namespace hvdlite
