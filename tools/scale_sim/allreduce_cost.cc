#include "tools/scale_sim/allreduce_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace hvdlite::scale_sim {
namespace {

// One exchange: a rank sends `bytes` and receives as many. `sharing` ranks use
// its port.
double ExchangeMicroseconds(const LinkParameters& link, int sharing,
                            double software_ns_per_byte, double bytes) {
  return link.latency_us + 2 * link.overhead_us +
         (link.ns_per_byte * sharing + software_ns_per_byte) * bytes * 1e-3;
}

// Ranks next to each other, as many on each node.
struct Group {
  const AllreduceModel& model;
  int ranks = 1;
  int ranks_per_node = 1;
  int sharing = 1;  // of a node's port

  double Exchange(bool within_node, double bytes) const {
    return within_node
               ? ExchangeMicroseconds(model.within_node, 1,
                                      model.software_ns_per_byte, bytes)
               : ExchangeMicroseconds(model.between_nodes, sharing,
                                      model.software_ns_per_byte, bytes);
  }
  // Rounds of halving or doubling, with partners 1, 2, 4, ... ranks away.
  int rounds() const {
    return std::bit_width(static_cast<unsigned>(ranks)) - 1;
  }
  bool IsWithinNode(int round) const { return (1 << round) < ranks_per_node; }
  // Ranks beyond the largest power of two hand their buffer to another one
  // before, and get the result after.
  double Fold(double bytes) const {
    if (std::has_single_bit(static_cast<unsigned>(ranks))) return 0;
    return 2 * Exchange(ranks <= ranks_per_node, bytes);
  }
};

double RecursiveDoublingMicroseconds(const Group& group, double bytes) {
  double us = group.Fold(bytes);
  for (int round = 0; round < group.rounds(); ++round) {
    us += group.Exchange(group.IsWithinNode(round), bytes);
  }
  return us;
}

double RabenseifnerMicroseconds(const Group& group, double bytes) {
  double us = group.Fold(bytes);
  // Halves go to the partner farthest away, and come back from it.
  double part = bytes / 2;
  for (int round = group.rounds() - 1; round >= 0; --round) {
    us += 2 * group.Exchange(group.IsWithinNode(round), part);
    part /= 2;
  }
  return us;
}

// Neighbours of a ring: one rank of a node sends to another node, so its port
// is not shared.
double RingMicroseconds(const Group& group, double bytes) {
  Group ring = group;
  if (group.ranks_per_node > 1) ring.sharing = 1;
  return 2.0 * (group.ranks - 1) *
         ring.Exchange(group.ranks <= group.ranks_per_node,
                       bytes / group.ranks);
}

double GroupMicroseconds(const Group& group, double bytes) {
  if (group.ranks == 1) return 0;
  switch (group.model.algorithm) {
    case AllreduceAlgorithm::kRecursiveDoubling:
      return RecursiveDoublingMicroseconds(group, bytes);
    case AllreduceAlgorithm::kRing:
      return RingMicroseconds(group, bytes);
    case AllreduceAlgorithm::kRabenseifner:
      return RabenseifnerMicroseconds(group, bytes);
    case AllreduceAlgorithm::kFastest:
      break;
  }
  return std::min({RecursiveDoublingMicroseconds(group, bytes),
                   RingMicroseconds(group, bytes),
                   RabenseifnerMicroseconds(group, bytes)});
}

double PieceMicroseconds(const AllreduceModel& model, double bytes, int ranks) {
  const int local = std::min(model.ranks_per_node, ranks);
  if (!model.hierarchical) {
    return GroupMicroseconds({.model = model,
                              .ranks = ranks,
                              .ranks_per_node = local,
                              .sharing = local},
                             bytes);
  }
  const double part = bytes / local;
  const int nodes = (ranks + local - 1) / local;
  // A signal and an answer per phase, and the bytes of the other ranks.
  const double within_node_us =
      local == 1
          ? 0
          : 2 * (model.within_node.latency_us +
                 2 * model.within_node.overhead_us) +
                model.shared_memory_ns_per_byte * 1e-3 * 2 * (bytes - part);
  return within_node_us + GroupMicroseconds({.model = model,
                                             .ranks = nodes,
                                             .ranks_per_node = 1,
                                             .sharing = local},
                                            part);
}

}  // namespace

std::optional<AllreduceAlgorithm> AllreduceAlgorithmNamed(
    absl::string_view name) {
  if (name == "recursive-doubling") {
    return AllreduceAlgorithm::kRecursiveDoubling;
  }
  if (name == "ring") return AllreduceAlgorithm::kRing;
  if (name == "rabenseifner") return AllreduceAlgorithm::kRabenseifner;
  if (name == "fastest") return AllreduceAlgorithm::kFastest;
  return std::nullopt;
}

double AllreduceSeconds(const AllreduceModel& model, int64_t bytes, int ranks) {
  if (ranks <= 1 || bytes <= 0) return 0;
  const int64_t piece =
      model.chunk_bytes > 0 ? std::min(model.chunk_bytes, bytes) : bytes;
  double us = static_cast<double>(bytes / piece) *
              PieceMicroseconds(model, static_cast<double>(piece), ranks);
  if (bytes % piece > 0) {
    us += PieceMicroseconds(model, static_cast<double>(bytes % piece), ranks);
  }
  return us * 1e-6;
}

}  // namespace hvdlite::scale_sim
