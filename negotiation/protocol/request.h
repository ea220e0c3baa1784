// Request is what the ranks have to agree on before an operation can run. Also:
// the error that they get if they disagree.
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

// To add a kind of operation, add its value and its row in kCollectives. Its
// handling follows from these, except for the call of the data plane that
// carries it out (negotiation/engine/bucket_collective.cc).

// The values are sent between ranks: only append.
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
  kJoin = 9,  // not sent as a request
};

// The memory of a tensor on one rank. Rows are indices of the first dimension.
enum class MemoryRule : uint8_t {
  kNone,   // there are no tensors
  kWhole,  // input and output of SizeBytes(); they may be the same
  // An input of SizeBytes(), and an output of this member's EvenRows() rows.
  kShare,
  // The number of rows differs among ranks: the input has any number, and the
  // rows of all members arrive. The first dimension is kAnyLength.
  kRows,
  // The same for one tensor, but each member gets some of the input's rows.
  kSplitRows,
};

// What happens to the operation while members have joined.
enum class AfterJoin : uint8_t {
  kNeutral,    // they contribute neutral elements, or no rows
  kNeedsRoot,  // the same, but it fails if the root has joined
  kNeedsAll,   // it fails
};

struct CollectiveTraits {
  Collective collective;
  absl::string_view name;  // as in trace events
  MemoryRule memory;
  AfterJoin after_join;
  bool has_root = false;  // Request::root_rank, a member
  // Runs in buckets with others of its kind; otherwise by a decision of its
  // own.
  bool in_buckets = true;
  // A rank may submit it without an input: Operation::absent.
  bool may_be_absent = false;
  // At its gate, a waiting leaf counts as arrived without a message; see Gates.
  bool counts_waiting_leaves = false;
};

// Indexed by value. There is no column for what the ranks have to agree on:
// they agree on the whole Request, in which irrelevant fields have defaults.
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
     .in_buckets = false},
    {.collective = Collective::kRemoveProcessSet,
     .name = "REMOVE_PROCESS_SET",
     .memory = MemoryRule::kNone,
     .after_join = AfterJoin::kNeedsAll,
     .in_buckets = false},
    {.collective = Collective::kJoin,
     .name = "JOIN",
     .memory = MemoryRule::kNone,
     .after_join = AfterJoin::kNeutral,
     .in_buckets = false},
};
inline constexpr int kNumCollectives = std::size(kCollectives);

// "ALLREDUCE", "BROADCAST", ...; or "UNKNOWN".
absl::string_view NameOf(Collective collective);

// 0: all ranks of the world. Others are numbered as they are added.
using ProcessSetId = uint32_t;

// The length of a dimension in which the ranks may differ.
inline constexpr int64_t kAnyLength = -1;

// What the ranks have to agree on about a tensor.
struct TensorSpec {
  collective::DataType dtype = collective::DataType::kFloat32;
  // In elements. The first one of an allgather or alltoall is kAnyLength.
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
// The size of one row, an index of the first dimension.
int64_t RowBytes(const TensorSpec& tensor);

// Describes one operation on one tensor, or on a group of tensors that run
// together. All ranks submit an equal Request under the same name; otherwise
// all get the same error.
struct Request {
  // The name belongs to one process set: two sets never use one name at the
  // same time.
  std::string name;
  ProcessSetId process_set = 0;
  Collective collective = Collective::kAllreduce;
  TensorSpecs tensors;  // none for a barrier
  collective::ReduceOp op = collective::ReduceOp::kSum;
  // Divide the sum by the number of ranks that took part; op must be kSum.
  bool average = false;
  collective::Compression compression = collective::Compression::kNone;
  double prescale_factor = 1;
  double postscale_factor = 1;
  int root_rank = 0;  // for a broadcast; a rank of the world
  // The caller will also run the operation's gradient in its backward pass.
  bool differentiable = false;
  std::vector<int> members;  // of a process set to add
  ProcessSetId removed = 0;  // the process set to remove
  // Not empty: why this rank cannot take part. Then the operation fails on
  // every rank with this reason, and no rank waits for it.
  std::string local_error;

  // The size of all tensors; dimensions of kAnyLength count as 1.
  int64_t size_bytes() const;
  const CollectiveTraits& traits() const {  // for a known collective
    return kCollectives[static_cast<size_t>(collective)];
  }
  // Whether the first dimension may differ among ranks: for allgather,
  // alltoall.
  bool rows_differ() const {
    return traits().memory == MemoryRule::kRows ||
           traits().memory == MemoryRule::kSplitRows;
  }

  friend bool operator==(const Request&, const Request&) = default;
  // Hashes the fields in which requests of one name in one program can differ.
  template <typename H>
  friend H AbslHashValue(H hash, const Request& request) {
    return H::combine(std::move(hash), request.name, request.process_set,
                      request.collective, request.tensors, request.op,
                      request.average, request.compression,
                      request.prescale_factor, request.postscale_factor,
                      request.root_rank, request.differentiable);
  }
};

// A request that some ranks submitted under a name.
struct Variant {
  Request request;
  RankRuns ranks;
  uint32_t step = 0;  // see Operation
};

// Whether the ranks can continue: they submitted the same, and none refuses.
bool Agree(absl::Span<const Variant> variants);

// For variants that do not agree: names the tensor, the first property that
// differs, its values with the ranks, and the remedy; or the ranks that refuse,
// and why.
std::string DescribeMismatch(absl::Span<const Variant> variants);

// The training step with which all ranks continue if they are in different
// ones; otherwise 0.
uint32_t NextStep(absl::Span<const Variant> variants);

}  // namespace hvdlite::negotiation
