// Request: what the ranks have to agree on before an operation can run; and the
// error that they get if they do not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "collective/kernels/data_type.h"
#include "negotiation/protocol/rank_list.h"

namespace hvdlite::negotiation {

// A kind of operation is added here: its value and its row in kCollectives.
// What becomes of it on the way follows from these, but for the call of the
// data plane that carries it out (negotiation/engine/batch_collective.cc).

// The values travel between ranks: append only.
enum class Collective : uint8_t {
  kAllreduce = 0,
  kBroadcast = 1,
  kBarrier = 2,
  kAdasum = 3,  // an allreduce that combines by Adasum
  kAllgather = 4,
  kAlltoall = 5,
  kReducescatter = 6,
  kAddProcessSet = 7,
  kRemoveProcessSet = 8,
  kJoin = 9,  // does not travel as a request
};

// The memory of a tensor on one rank. Rows are indices of the first dimension.
enum class MemoryRule : uint8_t {
  kNone,   // there are no tensors
  kWhole,  // input and output of SizeBytes(); they may be the same
  // An input of SizeBytes(), an output of this member's of EvenRows() rows.
  kShare,
  // Rows that differ among the ranks: the input has any number of them, and
  // all members' arrive. The first dimension is kAnyLength.
  kRows,
  // The same, but some of the input's rows go to each member; of one tensor.
  kSplitRows,
};

// What becomes of the operation while members have joined.
enum class AfterJoin : uint8_t {
  kNeutral,    // they contribute neutral elements, or no rows
  kNeedsRoot,  // the same, but it fails if the root has joined
  kNeedsAll,   // it fails
};

struct CollectiveTraits {
  Collective collective;
  absl::string_view name;  // as in the names of trace events
  MemoryRule memory;
  AfterJoin after_join;
  bool has_root = false;  // Request::root_rank, a member
  // Carried out with others of its kind; else by a decision of its own.
  bool in_batches = true;
  // A rank may submit it without an input: Operation::absent.
  bool may_be_absent = false;
  // At its gate a leaf that waits counts as here without coming; see Gates.
  bool counts_waiting_leaves = false;
};

// By value. What the ranks have to agree on is no column: it is all of Request,
// in which what does not concern a kind has its default.
inline constexpr CollectiveTraits kCollectives[] = {
    {.collective = Collective::kAllreduce,
     .name = "ALLREDUCE",
     .memory = MemoryRule::kWhole,
     .after_join = AfterJoin::kNeutral,
     .may_be_absent = true,
     .counts_waiting_leaves = true},
    {.collective = Collective::kBroadcast,
     .name = "BROADCAST",
     .memory = MemoryRule::kWhole,
     .after_join = AfterJoin::kNeedsRoot,
     .has_root = true},
    {.collective = Collective::kBarrier,
     .name = "BARRIER",
     .memory = MemoryRule::kNone,
     .after_join = AfterJoin::kNeutral,
     .counts_waiting_leaves = true},
    {.collective = Collective::kAdasum,
     .name = "ADASUM",
     .memory = MemoryRule::kWhole,
     .after_join = AfterJoin::kNeutral,
     .may_be_absent = true},
    {.collective = Collective::kAllgather,
     .name = "ALLGATHER",
     .memory = MemoryRule::kRows,
     .after_join = AfterJoin::kNeutral},
    {.collective = Collective::kAlltoall,
     .name = "ALLTOALL",
     .memory = MemoryRule::kSplitRows,
     .after_join = AfterJoin::kNeedsAll},
    {.collective = Collective::kReducescatter,
     .name = "REDUCESCATTER",
     .memory = MemoryRule::kShare,
     .after_join = AfterJoin::kNeedsAll},
    {.collective = Collective::kAddProcessSet,
     .name = "ADD_PROCESS_SET",
     .memory = MemoryRule::kNone,
     .after_join = AfterJoin::kNeedsAll,
     .in_batches = false},
    {.collective = Collective::kRemoveProcessSet,
     .name = "REMOVE_PROCESS_SET",
     .memory = MemoryRule::kNone,
     .after_join = AfterJoin::kNeedsAll,
     .in_batches = false},
    {.collective = Collective::kJoin,
     .name = "JOIN",
     .memory = MemoryRule::kNone,
     .after_join = AfterJoin::kNeutral,
     .in_batches = false},
};
inline constexpr int kNumCollectives = std::size(kCollectives);

// "ALLREDUCE", "BROADCAST", ...; or "UNKNOWN".
absl::string_view NameOf(Collective collective);

// 0: all ranks of the world. Others are numbered as they are added.
using ProcessSetId = uint32_t;

// Length of a dimension in which the ranks may differ.
inline constexpr int64_t kAnyLength = -1;

// What the ranks have to agree on about a tensor.
struct TensorSpec {
  collective::DataType dtype = collective::DataType::kFloat32;
  // Elements. The first of an allgather's or alltoall's is kAnyLength.
  std::vector<int64_t> shape = {};
  std::vector<int64_t> strides = {};  // elements; empty: row-major

  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
  template <typename H>
  friend H AbslHashValue(H hash, const TensorSpec& tensor) {
    return H::combine(std::move(hash), tensor.dtype, tensor.shape,
                      tensor.strides);
  }
};

using TensorSpecs = absl::InlinedVector<TensorSpec, 1>;

int64_t SizeBytes(const TensorSpec& tensor);  // kAnyLength counts as 1
// Of one row, an index of the first dimension.
int64_t RowBytes(const TensorSpec& tensor);

// Describes one operation, on one tensor or on a group of tensors that only go
// together. All ranks submit an equal Request under the same name, or all get
// the same error.
struct Request {
  // Of one process set: two sets do not use one name at the same time.
  std::string name;
  ProcessSetId process_set = 0;
  Collective collective = Collective::kAllreduce;
  TensorSpecs tensors;  // none of a barrier
  collective::ReduceOp op = collective::ReduceOp::kSum;
  // Divide the sum by the number of ranks that took part; op is kSum then.
  bool average = false;
  collective::Compression compression = collective::Compression::kNone;
  double prescale_factor = 1;
  double postscale_factor = 1;
  int root_rank = 0;  // of a broadcast; a rank of the world
  // The caller will run the operation's gradient, too, in its backward pass.
  bool differentiable = false;
  std::vector<int> members;  // of a process set to add
  ProcessSetId removed = 0;  // the process set to remove
  // Not empty: this rank cannot take part, and why. Then the operation fails on
  // every rank with this reason, rather than leave the others waiting.
  std::string local_error;

  // Of all tensors; dimensions of kAnyLength count as 1.
  int64_t size_bytes() const;
  const CollectiveTraits& traits() const {  // of a known collective
    return kCollectives[static_cast<size_t>(collective)];
  }
  // Whether the first dimension may differ among ranks: an allgather, alltoall.
  bool rows_differ() const {
    return traits().memory == MemoryRule::kRows ||
           traits().memory == MemoryRule::kSplitRows;
  }

  friend bool operator==(const Request&, const Request&) = default;
  // Of what differs among the requests of one name in one program.
  template <typename H>
  friend H AbslHashValue(H hash, const Request& request) {
    return H::combine(std::move(hash), request.name, request.process_set,
                      request.collective, request.tensors, request.op,
                      request.average, request.compression,
                      request.prescale_factor, request.postscale_factor,
                      request.root_rank, request.differentiable);
  }
};

// What some ranks submitted under a name.
struct Variant {
  Request request;
  RankRuns ranks;
  uint32_t step = 0;  // see Operation
};

// Whether the ranks can go on: they submitted the same, and nobody refuses.
bool Agree(absl::Span<const Variant> variants);

// For variants that do not agree: names the tensor, the first property that
// differs, its value on each side with the ranks, and the remedy; or the ranks
// that refuse and why.
std::string DescribeMismatch(absl::Span<const Variant> variants);

// The training step that all ranks go on with, where they are in different
// ones; else 0.
uint32_t NextStep(absl::Span<const Variant> variants);

}  // namespace hvdlite::negotiation
