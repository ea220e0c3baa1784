// Communicator: moves and reduces bytes among the ranks of one world.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "collective/kernels/data_type.h"

namespace hvdlite::collective {

// Result of one step of an operation that runs in the background.
enum class Headway { kNone, kSome, kDone };

class PhaseTimer;
struct FusedTensor;
struct Reduction;

// Memory with its owner.
struct TensorMemory {
  absl::Span<std::byte> bytes;  // at least the requested size
  std::shared_ptr<void> owner;
};

// The data plane of one rank. All ranks call the same operations in the same
// order. Comments say which arguments must be equal on all ranks.
//
// Threads: one thread at a time per Communicator, not always the same one.
// Every call blocks until this rank's part is done. Callers limit buffers to
// some MB, since larger ones do not fit into the cache; any size is correct.
//
// Some buffers consist of parts, one per rank, back to back in rank order.
// Parts may have different sizes, also zero.
//
// Errors: InvalidArgument for arguments that are wrong or differ among ranks.
// If the backend detects a difference, every rank gets the same error, and the
// communicator remains usable. DeadlineExceeded names the missing ranks if they
// are known. Unavailable means that the transport is broken. After the last two
// the communicator is broken: every later call returns the same error.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Prefix of trace events: "MPI" gives "MPI_ALLREDUCE".
  virtual absl::string_view name() const = 0;

  // Reduces `buffer` in place over all ranks; every rank gets the result.
  // `buffer` is an array of `dtype`, which must have `op` (see HasOp()). All
  // ranks pass the same number of bytes, a multiple of SizeOf(dtype) and
  // aligned to it. 16-bit floats are added in float32 and rounded once per hop.
  virtual absl::Status Allreduce(absl::Span<std::byte> buffer, DataType dtype,
                                 ReduceOp op) = 0;

  // How many allreduces of `bytes` each may be in flight at once, if the
  // backend supports this: links stay busy while this rank packs, reduces and
  // unpacks. 1: use Allreduce().
  virtual size_t allreduces_at_once(size_t /*bytes*/) const { return 1; }
  // Starts an allreduce after those in flight; arguments as for Allreduce().
  // The memory must stay until it is done. No other operation may be called
  // until all are done.
  virtual absl::Status StartAllreduce(absl::Span<std::byte> buffer,
                                      DataType dtype, ReduceOp op) {
    return Allreduce(buffer, dtype, op);
  }
  // Advances the allreduces in flight, at least one, without waiting. kDone:
  // the oldest one is done. Errors as for Allreduce().
  virtual absl::StatusOr<Headway> AdvanceAllreduces() { return Headway::kDone; }

  // Whether operations that ended with an error may still access the memory
  // that they were given.
  virtual bool uses_memory() const { return false; }

  // Copies `root`'s bytes to every rank; same size and root on every rank.
  virtual absl::Status Broadcast(absl::Span<std::byte> buffer, int root) = 0;

  // `buffer` has a part per rank, of `bytes_of_rank` (size() entries, the same
  // on every rank). Each rank fills its own part and receives all others.
  virtual absl::Status Allgather(absl::Span<std::byte> buffer,
                                 absl::Span<const size_t> bytes_of_rank) = 0;

  // `buffer` has a part per rank, of `bytes_of_rank` (size() entries, the same
  // on every rank; whole, aligned elements of `dtype`). Each rank gets the
  // reduction of its own part over all ranks, at the beginning of `buffer`; the
  // rest is unspecified. Rounding as for Allreduce().
  virtual absl::Status ReduceScatter(absl::Span<std::byte> buffer,
                                     absl::Span<const size_t> bytes_of_rank,
                                     DataType dtype, ReduceOp op) = 0;

  // Sends a part of `input` to every rank, and receives a part of `output` from
  // every rank. output_bytes[r] here is input_bytes[rank()] on rank r. Input
  // and output do not overlap.
  virtual absl::Status Alltoall(absl::Span<const std::byte> input,
                                absl::Span<const size_t> input_bytes,
                                absl::Span<std::byte> output,
                                absl::Span<const size_t> output_bytes) = 0;

  // Two ranks, which name each other as `peer`, exchange bytes, like
  // MPI_Sendrecv. Each sends as many bytes as the other receives, possibly
  // none. Ranks without a peer do not call it. The two spans do not overlap.
  //
  // Other collectives, as in fusion/ or adasum/, are built on Exchange(), so
  // that every backend has them. For a faster one a backend may override a
  // virtual function, whose default uses Exchange().
  virtual absl::Status Exchange(int peer, absl::Span<const std::byte> send,
                                absl::Span<std::byte> receive) = 0;

  // Returns when every rank has called it. It sleeps in growing pauses while it
  // waits; the operations above may spin. For the beginning and end of worlds,
  // and for tools. (Buckets wait at negotiation/protocol/gate.h.)
  virtual absl::Status Barrier() = 0;

  // FusedAllreduce() on this communicator, which has several ranks. By default,
  // elements are packed into `buffer` in their wire type, chunk by chunk,
  // reduced there and unpacked. If ranks share memory, elements are read from
  // the tensors and written back in separate passes. `timer` receives the
  // phases of each chunk and pauses between chunks. Arguments are already
  // checked.
  virtual absl::Status AllreduceTensors(absl::Span<std::byte> buffer,
                                        const Reduction& reduction,
                                        absl::Span<const FusedTensor> tensors,
                                        PhaseTimer& timer);

  // Whether some ranks share memory.
  virtual bool shares_memory() const { return false; }

  // Allocates memory for long-lived tensors that are reduced in place many
  // times. If ranks share memory, such tensors need no packing, provided that
  // every rank has its tensor at the same offset. The memory is zero and
  // page-aligned, and may outlive the communicator. Thread-safe and not
  // collective, unlike the other functions. ResourceExhausted if there is no
  // memory.
  virtual absl::StatusOr<TensorMemory> AllocateTensors(size_t bytes);

  // How long calls spin before they sleep for a peer: a hint for backends that
  // wait themselves.
  virtual void SetSpin(absl::Duration /*spin*/) {}
  virtual absl::Duration spin() const { return absl::ZeroDuration(); }

  // Some libraries, such as MPI, continue an operation only inside further
  // calls: a peer may still wait for data that a returned call has sent.
  // MakeProgress() continues it without waiting. Call it soon after such a
  // call, and then at growing intervals until the next call. TakeCalls()
  // returns whether there were calls since it was last asked.
  virtual void MakeProgress() {}
  virtual bool TakeCalls() { return false; }

  // Creates a communicator of `members`: ranks of this one in any order, each
  // once, including rank(). A member's new rank is its index. Only the members
  // call it, with the same `members` and the same `tag` (0 to 32767; different
  // for groups that are created at the same time). Blocks until all members
  // have called it. The group is independent of this communicator, except for
  // transport-wide errors. All members destroy it at the same point of their
  // program, and before this one.
  virtual absl::StatusOr<std::unique_ptr<Communicator>> CreateSubgroup(
      absl::Span<const int> members, int tag) = 0;
};

// The communicator of a world of one rank. Calls check their arguments and
// change nothing, since the data is already the result.
std::unique_ptr<Communicator> CreateSingleRankCommunicator();

// Wraps `inner` for reproducible results: reductions combine every element as
// ((r0 op r1) op r2) op .... So results do not depend on the position in a
// buffer, its size or timing, as they may in a library that chooses among
// algorithms. 16-bit floats are rounded once, at the end. `inner` itself serves
// types whose reductions do not depend on the order (integers, bools), and all
// other calls.
//
// A reduction costs an Alltoall of `inner` and, if all ranks need the result,
// an Allgather. Together they move no more bytes than an Allreduce must. It
// needs memory for one more buffer. Subgroups are of the same kind.
std::unique_ptr<Communicator> CreateRankOrderCommunicator(
    std::unique_ptr<Communicator> inner);

// The offset of each rank's part in bytes, for parts of `bytes_of_rank`.
inline std::vector<size_t> PartOffsets(absl::Span<const size_t> bytes_of_rank) {
  std::vector<size_t> offsets;
  offsets.reserve(bytes_of_rank.size());
  size_t offset = 0;
  for (const size_t bytes : bytes_of_rank) {
    offsets.push_back(offset);
    offset += bytes;
  }
  return offsets;
}

// Divides `rows` among `ranks` ranks as evenly as possible. The first
// (rows % ranks) ranks get one more than the others.
std::vector<int64_t> EvenRows(int64_t rows, int ranks);

// "rank 3 (host)", or "rank 3" if `host_of_rank` is empty.
std::string DescribeRank(int rank, absl::Span<const std::string> host_of_rank);

// Collective. Returns the values of all ranks in rank order if every rank
// passes one. If any rank passes an error, all ranks get Unavailable with the
// lowest such rank and its message. Errors of `communicator` are returned
// unchanged.
absl::StatusOr<std::vector<std::string>> GatherOrFail(
    Communicator& communicator, const absl::StatusOr<std::string>& mine,
    absl::Span<const std::string> host_of_rank = {});

// The same for a status: OK if it is OK on every rank.
absl::Status AgreeOn(Communicator& communicator, const absl::Status& status,
                     absl::Span<const std::string> host_of_rank = {});

}  // namespace hvdlite::collective
