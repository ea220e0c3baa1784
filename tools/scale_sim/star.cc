#include "tools/scale_sim/star.h"

#include <algorithm>

namespace hvdlite::scale_sim {

StarLoad ComputeStar(const NetworkParameters& network, int ranks,
                     int64_t report_bytes, int64_t directive_bytes,
                     int64_t gate_bytes) {
  const int local = std::min(ranks, network.ranks_per_node) - 1;
  const int remote = ranks - 1 - local;
  // The port or the core limits, whichever takes longer for a message.
  const auto service_us = [](const LinkParameters& link, int64_t bytes) {
    return std::max(
        link.overhead_us,
        link.gap_us + link.ns_per_byte * 1e-3 * static_cast<double>(bytes - 1));
  };
  const auto queue_us = [&](int64_t bytes) {
    return local * service_us(network.within_node, bytes) +
           remote * service_us(network.between_nodes, bytes);
  };
  const LinkParameters& last =
      remote > 0 ? network.between_nodes : network.within_node;
  StarLoad load;
  load.root_received = ranks - 1;
  load.root_sent = ranks - 1;
  load.latency_us = 2 * (last.overhead_us + last.latency_us) +
                    queue_us(report_bytes) + queue_us(directive_bytes);
  if (gate_bytes > 0) {
    // What ranks tell comes in as fast as they were told of the decision: only
    // the last one counts.
    load.root_received *= 2;
    load.root_sent *= 2;
    load.latency_us += 2 * (last.overhead_us + last.latency_us) +
                       service_us(last, gate_bytes) + queue_us(gate_bytes);
  }
  return load;
}

}  // namespace hvdlite::scale_sim
