#include "tools/scale_sim/network.h"

#include <algorithm>
#include <cmath>

namespace hvdlite::scale_sim {
namespace {

int64_t Nanoseconds(double us) { return std::llround(us * 1e3); }

// The time for the bytes after the first.
int64_t StreamNanoseconds(const LinkParameters& link, int64_t bytes) {
  return std::llround(link.ns_per_byte * static_cast<double>(bytes - 1));
}

}  // namespace

// Assumptions, rounded up from a prototype of polled mailboxes: a cache line
// moves between cores in 0.1 to 0.5 us.
LinkParameters SharedMemoryLink() {
  return {
      .latency_us = 0.5, .overhead_us = 0.2, .gap_us = 0.2, .ns_per_byte = 0.1};
}

std::optional<LinkParameters> LinkPreset(const std::string& name) {
  // 10 Gbit/s; the rest is an assumption: two trips through the kernel.
  if (name == "tcp") {
    return LinkParameters{
        .latency_us = 15, .overhead_us = 4, .gap_us = 4, .ns_per_byte = 0.8};
  }
  // EDR, 100 Gbit/s; L + 2o is about the latency of a ping-pong with MPI.
  if (name == "infiniband") {
    return LinkParameters{.latency_us = 1.0,
                          .overhead_us = 0.3,
                          .gap_us = 0.3,
                          .ns_per_byte = 0.08};
  }
  // Tofu D: 0.49 us per put and 6.8 GB/s per link (Ajima et al., "The Tofu
  // Interconnect D", CLUSTER 2018); o is an assumption.
  if (name == "tofu") {
    return LinkParameters{.latency_us = 0.5,
                          .overhead_us = 0.4,
                          .gap_us = 0.4,
                          .ns_per_byte = 0.15};
  }
  return std::nullopt;
}

double DrawExponential(double mean, std::mt19937_64& random) {
  constexpr double kUnit = 1.0 / (uint64_t{1} << 53);
  const double uniform = static_cast<double>(random() >> 11) * kUnit;
  return -mean * std::log1p(-uniform);
}

Network::Network(const NetworkParameters& parameters, int ranks)
    : parameters_(parameters),
      random_(parameters.seed),
      send_port_free_ns_(ranks, 0),
      receive_port_free_ns_(ranks, 0) {}

const LinkParameters& Network::LinkBetween(int from, int to) const {
  return from / parameters_.ranks_per_node == to / parameters_.ranks_per_node
             ? parameters_.within_node
             : parameters_.between_nodes;
}

Network::Departure Network::Send(int from, int to, int64_t bytes,
                                 int64_t now_ns) {
  const LinkParameters& link = LinkBetween(from, to);
  const int64_t start_ns = std::max(now_ns, send_port_free_ns_[from]);
  const int64_t stream_ns = StreamNanoseconds(link, bytes);
  send_port_free_ns_[from] = start_ns + Nanoseconds(link.gap_us) + stream_ns;
  const double stretch =
      1 + (parameters_.jitter > 0 ? DrawExponential(parameters_.jitter, random_)
                                  : 0);
  Departure departure;
  departure.sent_ns = start_ns + Nanoseconds(link.overhead_us);
  departure.arrival_ns =
      departure.sent_ns + Nanoseconds(link.latency_us * stretch) + stream_ns;
  int64_t& last_ns =
      last_arrival_ns_[uint64_t{static_cast<uint32_t>(from)} << 32 |
                       static_cast<uint32_t>(to)];
  departure.arrival_ns = std::max(departure.arrival_ns, last_ns);
  last_ns = departure.arrival_ns;
  return departure;
}

int64_t Network::Receive(int from, int to, int64_t bytes, int64_t now_ns) {
  const LinkParameters& link = LinkBetween(from, to);
  // The bytes of this message can enter the port only after the bytes of the
  // message before.
  const int64_t start_ns = std::max(
      now_ns, receive_port_free_ns_[to] + StreamNanoseconds(link, bytes));
  receive_port_free_ns_[to] = start_ns + Nanoseconds(link.gap_us);
  return start_ns + Nanoseconds(link.overhead_us);
}

}  // namespace hvdlite::scale_sim
