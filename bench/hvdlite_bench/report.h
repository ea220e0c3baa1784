// Prints a benchmark's results.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "bench/hvdlite_bench/results.h"

namespace hvdlite::tools {

// Prints one row per case and implementation of hvdlite (or per case, for
// Results::row_implementation) below one header, in the style of OSU's
// benchmarks and nccl-tests:
//
//   bytes  hvdlite_us  best_mpi_us  ratio [95 % interval]  algbw  busbw
//    1024        0.71         0.86   0.81 [0.79, 0.83]      1.44   1.44
//
// Times are medians over the rounds with the most common distance between the
// cores. A row ends with the distance if it is not near, and with the number of
// rounds if some are missing. Every other line begins with '#': the command,
// notes, skipped implementations, dropped rounds and, at the end, wrong
// results.
void PrintRows(const Results& results, std::ostream& out);

// Prints some of these lines: the command and notes; or wrong results, if any.
void PrintHead(const Results& results, std::ostream& out);
void PrintWrong(const Results& results, std::ostream& out);

// Prints everything about every implementation, in several lines per case.
// Rounds with near cores and with far cores have separate lines; rounds in
// which that changed are only counted.
void PrintDetails(const Results& results, std::ostream& out);

// The facts about the machine that belong to every result: processor, cores,
// MPI, commit.
std::string MachineLine(const Results& results);

// Returns the median, "12.34", or "-" without samples.
std::string TimeText(const std::vector<double>& samples);

// Returns the median with its 95 % interval, "0.810 [0.790, 0.830]", or "-"
// without ratios.
std::string RatioText(const std::vector<double>& ratios);

}  // namespace hvdlite::tools
