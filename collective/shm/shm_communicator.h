// Communicators whose ranks share memory where they share a node.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "collective/allreduce_table.h"
#include "collective/communicator.h"

namespace hvdlite::collective {

// Collective over `flat`, which connects all ranks. Reduces through shared
// memory inside the nodes, and across nodes with all ranks at once, each its
// slice; everything else goes through `flat`. `node_of_rank` tells which ranks
// are thought to share memory (any numbers, one per rank, the same list on
// every rank); whether they do is tried.
//
// Nodes may have different numbers of ranks, and the ranks of one may lie
// between those of another one. There are then as many slices as the smallest
// node has ranks.
//
// FailedPrecondition where there is nothing to gain: the nodes have one rank
// each. Unavailable, on all
// ranks, when the ranks of a node cannot share memory: the message names a rank
// and its reason. After an error `flat` is as it was, and can be used by
// itself; else it is moved from.
//
// Subgroups are of the same kind, where that pays, or flat. The name is that of
// `flat`; a batch tells how it was reduced (FusionHooks::on_algorithm).
absl::StatusOr<std::unique_ptr<Communicator>> CreateShmCommunicator(
    std::unique_ptr<Communicator>& flat, absl::Span<const int> node_of_rank,
    const AllreduceTable& table);

}  // namespace hvdlite::collective
