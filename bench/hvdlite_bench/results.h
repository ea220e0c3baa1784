// What a benchmark measured and what it ran on, also as JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/environment.h"
#include "support/statistics.h"

namespace hvdlite::tools {

// What a contender is in a comparison.
enum class Role {
  kHvdlite,    // what is judged
  kMpi,        // what it is judged by: the best of them in each round
  kReference,  // printed beside them
};

// How far the cores of ranks 0 and 1 are from each other. Virtual machines move
// their cores about.
enum class Distance {
  kNear,
  kFar,
  kMoved,    // near before and far after, or the other way round
  kUnknown,  // they share no memory, or there is one rank
};

// `before` and `after`: nanoseconds, one way, of a ping-pong through memory;
// NaN where there was none.
Distance DistanceOf(double before_ns, double after_ns);
const char* NameOf(Distance distance);

// A round of a contender.
struct Sample {
  double value = 0;         // in the case's unit; that of the slowest rank
  int64_t wrong = 0;        // elements, on all ranks, with an unexpected result
  std::vector<double> raw;  // what `value` was taken from, where it is kept
};

struct Contender {
  std::string name;
  Role role = Role::kHvdlite;
  std::vector<Sample> samples;  // of every round
  // Why it did not take part; empty if it did.
  std::string skipped;
};

// Something that several contenders do in the same rounds.
struct Case {
  std::string name;
  std::string description;
  std::string unit = "us";
  std::vector<int64_t> elements;  // of each float32 tensor; may be empty
  int repeats = 1;                // operations whose mean is a sample
  std::vector<double> before_ns;  // ping-pong before and after each round
  std::vector<double> after_ns;
  std::vector<Contender> contenders;

  int64_t bytes() const;  // of all tensors
  // A round in which nobody looked at the cores: a sample of each contender.
  void AddRound(const std::vector<double>& values);
  Distance distance(int64_t round) const {
    return DistanceOf(before_ns[round], after_ns[round]);
  }
};

struct Results {
  std::string mode;
  int ranks = 1;
  int rounds = 0;
  int warmup = 0;
  std::map<std::string, std::string> machine;
  std::vector<std::string> notes;  // sentences that belong to the figures
  std::vector<Case> cases;
  // The contender of hvdlite that rows are about; empty: each has its own.
  std::string row_contender;

  int64_t wrong() const;  // of all samples
  // support::kFoundExitCode if a sample was wrong, else 0.
  int exit_code() const;
};

// How many rounds there were at one distance.
int64_t CountRounds(const Case& a_case, Distance distance);

// The distance that most rounds had, those in between aside; the nearer of two
// that are as frequent.
Distance CommonDistance(const Case& a_case);

// Samples of a contender in the rounds of one distance.
std::vector<double> SamplesAt(const Case& a_case, const Contender& contender,
                              Distance distance);

// `contender`'s time divided by the best time of a contender with role kMpi,
// round by round, of the rounds of one distance; empty if there is none.
std::vector<double> RatiosToBestMpi(const Case& a_case,
                                    const Contender& contender,
                                    Distance distance);

// The shortest time of a contender with role kMpi in each round of one
// distance; empty if there is none.
std::vector<double> BestMpiAt(const Case& a_case, Distance distance);

// The median of the ratios, with its 95 % interval; of a single one, which has
// none, the interval of the mean, which is infinite.
struct MedianRatio {
  double median = 0;
  support::Interval interval;
};
MedianRatio MedianOf(const std::vector<double>& ratios);

// Durations of operations, in the unit of the times: `start` and `end` hold
// each rank's times, `ranks` lists of equal length one after the other. With
// `one_clock` from the latest start to the latest end, else the longest that a
// rank measured.
std::vector<double> OperationTimes(const std::vector<double>& start,
                                   const std::vector<double>& end, int ranks,
                                   bool one_clock);

// The same rounds, each sample the 99th percentile of its operations
// (Sample::raw); without the single operations.
Case Percentile99(const Case& median);

// As JSON: everything, all samples included; bench/compare reads it.
std::string ToJson(const Results& results);

// support::DescribeMachine(), the compiler, the version of the source (`commit`,
// or what git says about the folder it was compiled from) and the environment's
// variables that change how MPI, memory and hvdlite behave.
std::map<std::string, std::string> DescribeMachine(
    const base::Environment& environment, const std::string& commit);

// Bytes that each rank must at least send and receive in an allreduce, divided
// by the size of its buffer: 2 (n - 1) / n. Time per byte times this tells how
// busy the links are, whatever the number of ranks.
double AllreduceBusFactor(int ranks);

// Whether every rank may use the hardware threads of one core only, and no two
// of the same; `cores` has each rank's cores, as FormatCpuList(), and `node`
// its host's name.
bool BoundToOneCoreEach(const std::vector<std::string>& cores,
                        const std::vector<std::string>& node);

}  // namespace hvdlite::tools
