// Network computes when messages leave and arrive, with the LogGP model.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace hvdlite::scale_sim {

// The parameters of LogGP (Alexandrov, Ionescu, Schauser, Scheiman, "LogGP:
// Incorporating Long Messages into the LogP Model", 1995) for a class of links.
struct LinkParameters {
  double latency_us = 0;   // L: from the sender's port to the receiver's
  double overhead_us = 0;  // o: a core's time per message, at either end
  double gap_us = 0;       // g: between messages, at a port
  double ns_per_byte = 0;  // G: time per byte
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

// Mailboxes in shared memory.
LinkParameters SharedMemoryLink();

// A network between nodes: "tcp", "infiniband", "tofu"; nullopt for others.
std::optional<LinkParameters> LinkPreset(const std::string& name);

// Draws from an exponential distribution. The result is the same with every
// standard library.
double DrawExponential(double mean, std::mt19937_64& random);

// Each rank has one port. It sends one message at a time and receives one at a
// time, and messages between two ranks keep their order. There is no contention
// between ports.
class Network {
 public:
  Network(const NetworkParameters& parameters, int ranks);

  struct Departure {
    int64_t sent_ns = 0;     // the sender's core is free again
    int64_t arrival_ns = 0;  // the last byte is at the receiver
  };
  // Rank `from` starts to send at `now_ns`, or later when its port is free.
  Departure Send(int from, int to, int64_t bytes, int64_t now_ns);

  // Rank `to` starts to receive a message that has arrived, at `now_ns` or
  // later when its port is free. Returns when it has the message.
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
