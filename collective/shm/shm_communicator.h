// Communicators that reduce through shared memory inside nodes.
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
  // Root of the files that show the available memory: see AvailableMemory().
  std::string file_system_root = "/";
  // Called on rank 0 of a communicator when something becomes unavailable
  // later, such as memory.
  std::function<void(absl::string_view)> warn = {};
};

// Collective over `flat`, which connects all ranks. Reduces through shared
// memory inside nodes. Between nodes all ranks send at once, each its own
// slice. Everything else goes through `flat`. `node_of_rank` says which ranks
// probably share memory: one number per rank, the same list on every rank.
// Sharing is tested.
//
// Nodes may have different numbers of ranks, and ranks of different nodes may
// alternate. The number of slices is the size of the smallest node.
//
// FailedPrecondition if every node has only one rank, so there is nothing to
// gain. Unavailable, on all ranks, if ranks of a node cannot share memory; the
// message names a rank and its reason. After an error `flat` is unchanged and
// can be used; otherwise it is moved from.
//
// The first bucket that needs the memory for buckets, 8 MiB per rank, reserves
// it. If a rank cannot reserve it, `flat` reduces everything on all ranks from
// then on.
//
// Subgroups are of the same kind if they share memory, otherwise flat. The name
// is that of `flat`; FusionHooks::on_algorithm reports how a bucket was
// reduced.
absl::StatusOr<std::unique_ptr<Communicator>> CreateShmCommunicator(
    std::unique_ptr<Communicator>& flat, absl::Span<const int> node_of_rank,
    const AllreduceTable& table, const ShmOptions& options = {});

}  // namespace hvdlite::collective
