// What a benchmark measured.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/support/sample_summary.h"

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

  int64_t wrong() const;  // of all samples
};

// Samples of a contender in the rounds of one distance.
std::vector<double> SamplesAt(const Case& a_case, const Contender& contender,
                              Distance distance);

// `contender`'s time divided by the best time of a contender with role kMpi,
// round by round, of the rounds of one distance; empty if there is none.
std::vector<double> RatiosToBestMpi(const Case& a_case,
                                    const Contender& contender,
                                    Distance distance);

}  // namespace hvdlite::tools
