// The results of a benchmark and facts about its machine, also as JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/environment.h"
#include "support/statistics.h"

namespace hvdlite::tools {

// The role of an implementation in a comparison.
enum class Role {
  kHvdlite,    // the implementation under test
  kMpi,        // a baseline; the best one of each round counts
  kReference,  // only printed
};

// The distance between the cores of ranks 0 and 1. Hypervisors migrate virtual
// CPUs.
enum class Distance {
  kNear,
  kFar,
  kMoved,    // near before and far after, or vice versa
  kUnknown,  // no shared memory, or only one rank
};

// `before` and `after` are times in nanoseconds, one way, of a ping-pong
// through memory; NaN if there was none.
Distance DistanceOf(double before_ns, double after_ns);
const char* NameOf(Distance distance);

// A round of an implementation.
struct Sample {
  double value = 0;         // in the case's unit, on the slowest rank
  int64_t wrong = 0;        // elements with a wrong result on all ranks
  std::vector<double> raw;  // single times behind `value`, if kept
};

struct Implementation {
  std::string name;
  Role role = Role::kHvdlite;
  std::vector<Sample> samples;  // of every round
  // Why it was skipped; empty if it was not.
  std::string skipped;
};

// A task that several implementations run in the same rounds.
struct Case {
  std::string name;
  std::string description;
  std::string unit = "us";
  std::vector<int64_t> elements;  // of each float32 tensor; may be empty
  int repeats = 1;                // operations per sample, which is their mean
  std::vector<double> before_ns;  // ping-pong before and after each round
  std::vector<double> after_ns;
  std::vector<Implementation> implementations;

  int64_t bytes() const;  // of all tensors
  // Adds a round without a distance: a value for each implementation.
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
  std::vector<std::string> notes;  // sentences about the results
  std::vector<Case> cases;
  // The implementation of hvdlite in the rows; empty: each has its own rows.
  std::string row_implementation;

  int64_t wrong() const;  // over all samples
  // Returns support::kFoundExitCode if a sample was wrong, else 0.
  int exit_code() const;
};

// Returns the number of rounds with one distance.
int64_t CountRounds(const Case& a_case, Distance distance);

// Returns the distance of most rounds, except kMoved. If two are equally
// frequent, returns the nearer one.
Distance CommonDistance(const Case& a_case);

// Samples of an implementation in the rounds with one distance.
std::vector<double> SamplesAt(const Case& a_case,
                              const Implementation& implementation,
                              Distance distance);

// `implementation`'s time divided by the best baseline's (role kMpi), for each
// round with one distance. Empty if there is no baseline.
std::vector<double> RatiosToBestMpi(const Case& a_case,
                                    const Implementation& implementation,
                                    Distance distance);

// The best baseline's time (role kMpi) in each round with one distance. Empty
// if there is no baseline.
std::vector<double> BestMpiAt(const Case& a_case, Distance distance);

// The median of ratios with its 95 % interval. For a single ratio, the interval
// is that of the mean, which is infinite.
struct MedianRatio {
  double median = 0;
  support::Interval interval;
};
MedianRatio MedianOf(const std::vector<double>& ratios);

// Durations of operations, in the unit of the times. `start` and `end` hold
// each rank's times: `ranks` lists of equal length one after the other. With
// `one_clock` a duration is from the latest start to the latest end; otherwise
// it is the longest duration on any rank.
std::vector<double> OperationTimes(const std::vector<double>& start,
                                   const std::vector<double>& end, int ranks,
                                   bool one_clock);

// Returns the same rounds; each sample is the 99th percentile of its operations
// (Sample::raw), without the single operations.
Case Percentile99(const Case& median);

// Returns everything, including all samples, as JSON, which bench/compare
// reads.
std::string ToJson(const Results& results);

// Returns support::DescribeMachine(), the compiler, the version of the source
// (`commit`, or git describe in the directory of the source), and the
// environment variables that influence MPI, memory and hvdlite.
std::map<std::string, std::string> DescribeMachine(
    const base::Environment& environment, const std::string& commit);

// Bytes that each rank must at least send and receive in an allreduce, divided
// by the size of its buffer: 2 (n - 1) / n. The bandwidth times this factor is
// the load of the links, comparable for any number of ranks.
double AllreduceBusFactor(int ranks);

// True if every rank may use only the hardware threads of one core, and no two
// ranks share a core. `cores` holds each rank's cores as FormatCpuList()
// formats them; `node` holds its host's name.
bool BoundToOneCoreEach(const std::vector<std::string>& cores,
                        const std::vector<std::string>& node);

}  // namespace hvdlite::tools
