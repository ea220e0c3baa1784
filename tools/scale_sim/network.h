// Network: when messages leave and arrive, by the LogGP model.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace hvdlite::scale_sim {

// LogGP (Alexandrov, Ionescu, Schauser, Scheiman, "LogGP: Incorporating Long
// Messages into the LogP Model", 1995) for one class of links.
struct LinkParameters {
  double latency_us = 0;   // L: from the sender's port to the receiver's
  double overhead_us = 0;  // o: a core's time per message, at either end
  double gap_us = 0;       // g: between messages, at a port
  double ns_per_byte = 0;  // G
};

struct NetworkParameters {
  LinkParameters within_node = {};
  LinkParameters between_nodes = {};
  int ranks_per_node = 1;  // rank r is on node r / ranks_per_node
  // Every message takes L * (1 + E) instead of L, with E drawn from an
  // exponential distribution of this mean.
  double jitter = 0;
  uint64_t seed = 1;
};

// Shared-memory mailboxes.
LinkParameters SharedMemoryLink();

// A network between nodes: "tcp", "infiniband", "tofu"; nullopt for others.
std::optional<LinkParameters> LinkPreset(const std::string& name);

// From an exponential distribution; the same with every standard library.
double DrawExponential(double mean, std::mt19937_64& random);

// Each rank has one port: what it sends leaves one after the other, what it
// receives arrives one after the other, and messages between two ranks keep
// their order. There is no contention between ports.
class Network {
 public:
  Network(const NetworkParameters& parameters, int ranks);

  struct Departure {
    int64_t sent_ns = 0;     // the sender's core is free again
    int64_t arrival_ns = 0;  // the last byte is at the receiver
  };
  // Rank `from` begins to send as soon after `now_ns` as its port is free.
  Departure Send(int from, int to, int64_t bytes, int64_t now_ns);

  // Rank `to` begins to take in a message that has arrived, as soon after
  // `now_ns` as its port allows; when it has the message.
  int64_t Receive(int from, int to, int64_t bytes, int64_t now_ns);

 private:
  const LinkParameters& LinkBetween(int from, int to) const;

  const NetworkParameters parameters_;
  std::mt19937_64 random_;
  std::vector<int64_t> send_port_free_ns_;
  std::vector<int64_t> receive_port_free_ns_;
  absl::flat_hash_map<uint64_t, int64_t> last_arrival_ns_;  // per pair
};

}  // namespace hvdlite::scale_sim
