// The calls of the ranks of an in-process world, and their execution.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "collective/kernels/data_type.h"

namespace hvdlite::collective {

class SharedWorld;

// What one rank called. Each kind uses some of the fields. The memory belongs
// to the caller, which waits for the end.
struct Call {
  enum class Kind {
    kAllreduce,
    kBroadcast,
    kAllgather,
    kReduceScatter,
    kAlltoall,
    kExchange,  // an alltoall of two members that send nothing to themselves
    kBarrier,
    kCreateSubgroup
  };
  Kind kind = Kind::kBarrier;
  // The ranks that have to call it, in the order of their parts.
  absl::Span<const int> members = {};

  absl::Span<std::byte> buffer = {};            // or the output of an alltoall
  absl::Span<const size_t> bytes_of_rank = {};  // its parts, by member
  absl::Span<const std::byte> input = {};       // for an alltoall
  absl::Span<const size_t> input_bytes = {};    // its parts, by member

  DataType dtype = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;

  int tag = 0;
  std::shared_ptr<SharedWorld>* subgroup = nullptr;  // receives the new world
};

absl::string_view NameOf(Call::Kind kind);  // "Allreduce"

// InvalidArgument unless the calls match and their arguments are valid.
// calls[i] belongs to members[i]; all calls have the same, non-empty members.
absl::Status CheckCalls(absl::Span<const Call> calls);

// InvalidArgument that says which ranks called what; calls[i] belongs to
// ranks[i].
absl::Status DifferentCallsError(absl::Span<const int> ranks,
                                 absl::Span<const Call> calls);

// Moves and reduces the bytes of calls that CheckCalls has accepted. Reductions
// are in the order of the members.
void Execute(absl::Span<const Call> calls);

// For example "rank 1" or "ranks 1, 3".
inline std::string NameRanks(absl::Span<const int> ranks) {
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ",
                      absl::StrJoin(ranks, ", "));
}

}  // namespace hvdlite::collective
