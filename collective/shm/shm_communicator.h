// Communicators whose ranks share memory where they share a node.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "collective/communicator.h"
#include "collective/shm/allreduce_table.h"

namespace hvdlite::collective {

struct ShmOptions {
  // Where the memory that is available is read from: see AvailableMemory.
  std::string file_system_root = "/";
  // Told, on rank 0 of the communicator that it is about, what could not be had
  // later on.
  std::function<void(absl::string_view)> warn = {};
};

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
// The memory that batches travel through, 8 MiB per rank, is reserved by the
// first batch that wants it. Where a rank cannot reserve it, `flat` reduces
// everything on all ranks, from that batch on.
//
// Subgroups are of the same kind, where that pays, or flat. The name is that of
// `flat`; a batch tells how it was reduced (FusionHooks::on_algorithm).
absl::StatusOr<std::unique_ptr<Communicator>> CreateShmCommunicator(
    std::unique_ptr<Communicator>& flat, absl::Span<const int> node_of_rank,
    const AllreduceTable& table, const ShmOptions& options = {});

}  // namespace hvdlite::collective
