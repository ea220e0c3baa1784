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

// How far one step of something that runs beside its caller has come.
enum class Headway { kNone, kSome, kDone };

class PhaseTimer;
struct FusedTensor;
struct Reduction;

// Bytes with their owner.
struct TensorMemory {
  absl::Span<std::byte> bytes;  // at least as many as were asked for
  std::shared_ptr<void> owner;
};

// The data plane of one rank. All ranks call the same operations in the same
// order, with the same arguments where the comments say so.
//
// Threads: one thread at a time per Communicator (it need not always be the
// same one). Every call blocks until this rank's part is done. Callers keep
// buffers to a bounded chunk (some MB), since larger ones fall out of cache;
// any size is correct.
//
// Some buffers consist of parts, one per rank, that lie one after the other in
// rank order; their sizes may differ and be zero.
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
  // an array of `dtype`, which has `op` (see HasOp), with the same number of
  // bytes on every rank (a multiple of SizeOf(dtype), aligned to it). 16-bit
  // floats are added in float32 and rounded once per hop.
  virtual absl::Status Allreduce(absl::Span<std::byte> buffer, DataType dtype,
                                 ReduceOp op) = 0;

  // The same of several buffers at once, where the backend can do that: then
  // links stay busy while this rank packs, reduces and unpacks. So many
  // of `bytes` each may be under way at a time; 1: Allreduce does as well.
  virtual size_t allreduces_at_once(size_t /*bytes*/) const { return 1; }
  // Begins one, behind those that are under way; arguments as Allreduce. The
  // memory must stay until it is done. No other operation may be called until
  // all are done.
  virtual absl::Status StartAllreduce(absl::Span<std::byte> buffer,
                                      DataType dtype, ReduceOp op) {
    return Allreduce(buffer, dtype, op);
  }
  // Carries on those that are under way, at least one, without waiting. kDone:
  // the oldest one is done. Errors: as Allreduce.
  virtual absl::StatusOr<Headway> AdvanceAllreduces() { return Headway::kDone; }

  // Whether operations that an error has ended may still read and write the
  // memory that they were given.
  virtual bool uses_memory() const { return false; }

  // Every rank ends with `root`'s bytes; same size and root on every rank.
  virtual absl::Status Broadcast(absl::Span<std::byte> buffer, int root) = 0;

  // `buffer` has a part per rank, of `bytes_of_rank` (size() entries, the same
  // on every rank). Each rank has filled its own part and ends with all parts.
  virtual absl::Status Allgather(absl::Span<std::byte> buffer,
                                 absl::Span<const size_t> bytes_of_rank) = 0;

  // `buffer` has a part per rank, of `bytes_of_rank` (size() entries, the same
  // on every rank; whole, aligned elements of `dtype`). Each rank ends with the
  // reduction of its own part over all ranks, which lies at the beginning of
  // `buffer`; what lies behind it is unspecified. Rounding as in Allreduce.
  virtual absl::Status ReduceScatter(absl::Span<std::byte> buffer,
                                     absl::Span<const size_t> bytes_of_rank,
                                     DataType dtype, ReduceOp op) = 0;

  // `input` has a part for every rank, `output` gets a part from every rank;
  // output_bytes[r] here is input_bytes[rank()] on rank r. The two do not
  // overlap.
  virtual absl::Status Alltoall(absl::Span<const std::byte> input,
                                absl::Span<const size_t> input_bytes,
                                absl::Span<std::byte> output,
                                absl::Span<const size_t> output_bytes) = 0;

  // Two ranks, each of which names the other as `peer`, swap bytes: what one
  // sends has the size of what the other receives, also none. Ranks that have
  // no peer do not call it. The two spans do not overlap. A collective that is
  // not in this class is made of it, in fusion/ or as adasum/ is: then every
  // backend has it. A backend that can do better gets a virtual function for
  // it, which is not pure: by default, what was made of Exchange.
  virtual absl::Status Exchange(int peer, absl::Span<const std::byte> send,
                                absl::Span<std::byte> receive) = 0;

  // Returns when every rank has called it. Unlike the operations above, which
  // may spin for their peers, it sleeps while it waits, in growing pauses: for
  // the beginning and end of worlds, and for tools. (What stands before batches
  // is negotiation/protocol/gate.h.)
  virtual absl::Status Barrier() = 0;

  // FusedAllreduce of this communicator, which has several ranks. As many
  // elements as fit in their wire type are packed into `buffer`, reduced there
  // and unpacked, and so on; where ranks see each other's memory, elements are
  // taken from the tensors, and returned there, in passes of its own. Tells
  // `timer` of the phases of each chunk, and pauses it between chunks.
  // Arguments have been checked.
  virtual absl::Status AllreduceTensors(absl::Span<std::byte> buffer,
                                        const Reduction& reduction,
                                        absl::Span<const FusedTensor> tensors,
                                        PhaseTimer& timer);

  // Whether some ranks see each other's memory.
  virtual bool shares_memory() const { return false; }

  // Memory for tensors that live long and are reduced again and again, in
  // place: where ranks share memory, nothing needs to be packed then, if every
  // rank has its tensor at the same place of its memory. Zeros, aligned to a
  // page. Unlike everything else here it is thread-safe, and no other rank
  // takes part; it may outlive the communicator. ResourceExhausted when there
  // is no memory.
  virtual absl::StatusOr<TensorMemory> AllocateTensors(size_t bytes);

  // How long calls look again at once, burning the processor, before they sleep
  // for a peer: a hint for backends that wait by themselves.
  virtual void SetSpin(absl::Duration /*spin*/) {}
  virtual absl::Duration spin() const { return absl::ZeroDuration(); }

  // Some libraries, as MPI may, carry on what a call has begun only in further
  // calls: a peer may still wait for what this rank has sent in one that has
  // returned long ago. MakeProgress() carries that on, without waiting; it is to
  // be called soon after such a call, and then in growing pauses for as long as
  // there is no other. TakeCalls() tells whether there were any since it was
  // asked last.
  virtual void MakeProgress() {}
  virtual bool TakeCalls() { return false; }

  // A communicator of `members`: ranks of this one, in any order, each once,
  // with rank() among them; a member's rank there is its index. Called by the
  // members alone, which all pass the same `members` and the same `tag` (from 0
  // to 32767; different for groups that are made at the same time). Blocks
  // until they all have. Independent of this communicator, but for
  // transport-wide errors; to be destroyed by all members at the same point of
  // their program, and before this one.
  virtual absl::StatusOr<std::unique_ptr<Communicator>> CreateSubgroup(
      absl::Span<const int> members, int tag) = 0;
};

// The communicator of a world of one rank: every call checks its arguments and
// leaves what is there, since that is the result.
std::unique_ptr<Communicator> CreateSingleRankCommunicator();

// Wraps `inner`: reductions combine every element as ((r0 op r1) op r2) op ...,
// so that results depend neither on where in a buffer an element lies, nor on
// the buffer's size, nor on timing, as they may in a library that chooses among
// algorithms. 16-bit floats are then rounded once, at the end. For types whose
// reductions do not depend on the order (integers, bools), and all other calls,
// `inner` is called as is.
//
// A reduction costs an Alltoall and (if all are to get the result) an Allgather
// of `inner`, which move as many bytes as its Allreduce at least does, and
// memory for one more buffer. Subgroups are of the same kind.
std::unique_ptr<Communicator> CreateRankOrderCommunicator(
    std::unique_ptr<Communicator> inner);

// The offset in bytes of each rank's part, of `bytes_of_rank`.
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

// Rows of each of `ranks` ranks out of `rows`, where all get as equal a share
// as can be: the first rows % ranks of them get one more than the others.
std::vector<int64_t> EvenRows(int64_t rows, int ranks);

// "rank 3 (host)", or "rank 3" where `host_of_rank` is empty.
std::string DescribeRank(int rank, absl::Span<const std::string> host_of_rank);

// Collective. Returns the values of all ranks, in rank order, if every rank
// passes one. If any rank passes an error, all ranks get Unavailable, which
// names the lowest such rank and repeats its message. Errors of `communicator`
// are returned as they are.
absl::StatusOr<std::vector<std::string>> GatherOrFail(
    Communicator& communicator, const absl::StatusOr<std::string>& mine,
    absl::Span<const std::string> host_of_rank = {});

// The same of a status: OK if it is so on every rank.
absl::Status AgreeOn(Communicator& communicator, const absl::Status& status,
                     absl::Span<const std::string> host_of_rank = {});

}  // namespace hvdlite::collective
