// What the benchmark measured, and how it is told.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace hvdlite::tools {

struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
};

// Of at least one sample.
Spread SpreadOf(std::vector<double> samples);

// One workload: samples of round i are at index i of both lists.
struct Comparison {
  std::string name;
  std::string description;
  int64_t tensors = 0;
  int64_t bytes = 0;
  int repeats = 1;
  std::vector<double> hvdlite_us;
  std::vector<double> mpi_us;

  // hvdlite's time divided by MPI's, round by round.
  std::vector<double> Ratios() const;
};

struct Measurements {
  int ranks = 0;
  int rounds = 0;
  int warmup = 0;
  std::string mpi_library;
  std::vector<double> ping_pong_ns;  // one way, one sample per round; or empty
  std::vector<Comparison> comparisons;
};

// A table for people.
void PrintTable(const Measurements& measurements, std::ostream& out);

// Everything, samples included. Throws std::runtime_error naming `path` if it
// cannot be written.
void WriteJson(const Measurements& measurements, const std::string& path);

}  // namespace hvdlite::tools
