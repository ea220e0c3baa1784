// The results of a simulation as a table, as JSON and as a page.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "tools/scale_sim/simulation.h"

namespace hvdlite::scale_sim {

struct Distribution {
  double median = 0;
  double p99 = 0;
  double max = 0;
};

// Requires at least one sample.
Distribution DistributionOf(std::vector<float> samples);

// The messages of ranks, per rank and step.
struct Load {
  double mean_messages = 0;
  double max_messages = 0;
  double mean_bytes = 0;
  double max_bytes = 0;
  double root_received_per_decision = 0;  // messages
  double root_sent_per_decision = 0;
  double root_received_bytes = 0;  // per step
  double decisions = 0;            // per step
};
Load LoadOf(const Traffic& traffic, int steps);

// A row of the table: one world.
struct Row {
  int ranks = 0;
  int arity = 0;
  int root_children = 0;
  int tree_height = 0;
  Distribution tensor_latency_us;
  Distribution bucket_latency_us;
  double median_lateness_us = 0;
  // Means over the steps. A step ends when its last rank ends.
  double step_ms = 0;
  double computation_ms = 0;  // until the last rank has computed
  double buckets_ms = 0;
  Load steady;
  Load warmup;
};
Row RowOf(const SimulationOptions& options, const SimulationResult& result);

// Prints an explanation of the columns, and the table.
void PrintTable(const std::vector<Row>& rows, std::ostream& out);
std::string ToJson(const SimulationOptions& options,
                   const std::vector<Row>& rows);

// Returns a page for browsers: latency over ranks, with a curve for each arity.
std::string ToPage(const std::vector<Row>& rows);

}  // namespace hvdlite::scale_sim
