// What people read of a benchmark's results.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "bench/hvdlite_bench/results.h"

namespace hvdlite::tools {

// One row per case and contender of hvdlite (or per case, of
// Results::row_contender), below one header, as OSU's benchmarks and nccl-tests
// print them:
//
//   bytes  hvdlite_us  best_mpi_us  ratio [95 % interval]  algbw  busbw
//    1024        0.71         0.86   0.81 [0.79, 0.83]      1.44   1.44
//
// Times are medians, of the rounds of the distance between the cores that most
// rounds had; at the end of a row stands what is not near, and how many rounds
// if they are not all. Every other line begins with '#': what ran, notes, what
// was skipped or left out, and, last, wrong results.
void PrintRows(const Results& results, std::ostream& out);

// Of these lines, what ran and the notes; and the last, if anything is wrong.
void PrintHead(const Results& results, std::ostream& out);
void PrintWrong(const Results& results, std::ostream& out);

// Everything about every contender, in several lines per case. Rounds in which
// the cores were near and far each have lines of their own; rounds in between
// are only counted.
void PrintDetails(const Results& results, std::ostream& out);

// What of the machine one has to know with every figure: processor, cores, MPI,
// commit.
std::string MachineLine(const Results& results);

// The median, "12.34"; "-" of none.
std::string TimeText(const std::vector<double>& samples);

// The median with its 95 % interval, "0.810 [0.790, 0.830]"; "-" of none.
std::string RatioText(const std::vector<double>& ratios);

}  // namespace hvdlite::tools
