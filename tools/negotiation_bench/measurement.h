// What submitting and negotiating cost, without a data plane.
#pragma once

#include <string>

namespace hvdlite::negotiation_bench {

struct Options {
  int ranks = 2;
  int tensors = 1000;
  int tensor_bytes = 4;
  int steps = 200;
  int warm_up_steps = 5;
};

// Medians over the steps.
struct Result {
  std::string name;
  double submit_ns = 0;  // per tensor, on one rank
  // From the last submission to the completion of all, per tensor.
  double finish_ns = 0;
  // CPU time of all threads, per tensor and rank; 0 where it is not measured.
  double cpu_ns = 0;
};

// Two to many Negotiators in one thread, which hand each other their messages
// as bytes: the protocol alone. Times are per tensor and rank.
Result MeasureNegotiators(const Options& options);

enum class Submission { kOneByOne, kPrepared };

// Coordinators with threads, in-process control channels and IdleCommunicators.
Result MeasureCoordinators(const Options& options, Submission submission);

}  // namespace hvdlite::negotiation_bench
