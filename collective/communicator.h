// Communicator: moves and reduces bytes among the ranks of one world.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "collective/data_type.h"
#include "collective/reduce_op.h"

namespace hvdlite::collective {

// The data plane of one rank. All ranks call the same operations in the same
// order, with the same arguments where the comments say so.
//
// Threads: one thread at a time per Communicator (it need not always be the
// same one). Every call blocks until this rank's part is done. Callers keep
// buffers to a bounded chunk (some MB), since larger ones fall out of cache;
// any size is correct.
//
// Errors: InvalidArgument for arguments that are wrong or that differ among
// ranks (where the backend can tell; then every rank gets the same error, and
// the communicator remains usable), DeadlineExceeded naming the missing ranks
// where they are known, Unavailable when the transport broke. After the latter
// two the communicator is broken: every later call returns the same error.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Prefix of trace events: "MPI" gives "MPI_ALLREDUCE".
  virtual absl::string_view name() const = 0;

  // In place: every rank ends with the reduction, over all ranks, of `buffer`,
  // an array of `dtype` with the same number of bytes on every rank (a multiple
  // of SizeOf(dtype), aligned to it). 16-bit floats are added in float32 and
  // rounded once per hop.
  virtual absl::Status Allreduce(absl::Span<std::byte> buffer, DataType dtype,
                                 ReduceOp op) = 0;

  // Every rank ends with `root`'s bytes; same size and root on every rank.
  virtual absl::Status Broadcast(absl::Span<std::byte> buffer, int root) = 0;

  // Returns when every rank has called it. Unlike the operations above, which
  // may spin for their peers, it sleeps while it waits (in growing pauses), so
  // that it can stand before them: nobody then spins for a straggler.
  virtual absl::Status Barrier() = 0;
};

}  // namespace hvdlite::collective
