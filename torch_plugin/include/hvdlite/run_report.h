// The report of a run: a file from which scaling_sweep reads the speed of a
// program.
#pragma once

#include <string>
#include <vector>

namespace hvdlite {

struct RunReport {
  // Speed of all ranks together, above 0.
  double items_per_second = 0;
  // Name of the items, such as "images": letters, digits and '_'.
  std::string items = "items";
  // Items per second of each interval of the run, for example of each epoch. If
  // there are any, scaling_sweep uses their median instead of
  // `items_per_second` and leaves out the intervals of the warm-up
  // (warmup_intervals in its specification).
  std::vector<double> intervals = {};
  // Threads that compute on a rank. 0: LibTorch's present number.
  int threads_per_rank = 0;
};

// Writes `report` as JSON on rank 0, with its host and the versions of hvdlite,
// LibTorch, MPI and UCX. Other ranks return at once. Not collective; call it
// between init() and shutdown(). A crash leaves the old file or the complete
// new one. Throws c10::Error with the file's name on rank 0 if it cannot be
// written, and on all ranks for numbers and names that are not valid.
//
//   hvdlite::write_run_report(
//       path, {.items_per_second = images / seconds, .items = "images"});
void write_run_report(const std::string& path, const RunReport& report);

}  // namespace hvdlite
