#include "tests/testing/in_process/call.h"

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "collective/call_arguments.h"
#include "collective/communicator.h"
#include "collective/kernels/reduction_kernels.h"

namespace hvdlite::collective {
namespace {

using Kind = Call::Kind;

// Describes what must be the same in all calls of an operation.
std::string Describe(const Call& call) {
  std::string text(NameOf(call.kind));
  if (call.kind == Kind::kExchange || call.kind == Kind::kCreateSubgroup) {
    absl::StrAppend(&text, " of ", NameRanks(call.members), ", tag ", call.tag);
  } else if (call.kind != Kind::kAlltoall && call.kind != Kind::kBarrier) {
    absl::StrAppend(&text, " of ", call.buffer.size(), " bytes ",
                    NameOf(call.dtype), " ", NameOf(call.op), ", root ",
                    call.root, ", parts [",
                    absl::StrJoin(call.bytes_of_rank, ", "), "]");
  }
  return text;
}

// Whether both calls have the same description; this is cheaper.
bool AreAlike(const Call& a, const Call& b) {
  if (a.kind != b.kind) return false;
  // CheckSizesFit compares the two sides of these.
  if (a.kind == Kind::kAlltoall || a.kind == Kind::kExchange) return true;
  return a.buffer.size() == b.buffer.size() &&
         a.bytes_of_rank == b.bytes_of_rank && a.dtype == b.dtype &&
         a.op == b.op && a.root == b.root && a.tag == b.tag;
}

// The checks that need no other rank.
absl::Status CheckArguments(const Call& call, int index) {
  const int size = static_cast<int>(call.members.size());
  switch (call.kind) {
    case Kind::kAllreduce:
      return CheckReductionArguments("Allreduce", call.buffer, call.dtype,
                                     call.op);
    case Kind::kReduceScatter:
      return CheckReduceScatterArguments(call.buffer, call.bytes_of_rank,
                                         call.dtype, call.op, size);
    case Kind::kBroadcast:
      return CheckBroadcastArguments(call.root, size);
    case Kind::kAllgather:
      return CheckParts("Allgather", call.buffer.size(), call.bytes_of_rank,
                        size);
    case Kind::kAlltoall:
      return CheckAlltoallArguments(call.input.size(), call.input_bytes,
                                    call.buffer.size(), call.bytes_of_rank,
                                    index, size);
    case Kind::kExchange:
    case Kind::kBarrier:
    case Kind::kCreateSubgroup:
      return absl::OkStatus();
  }
  return absl::InternalError("unknown call");
}

// Checks that what every member sends to every other has the size that the
// other expects.
absl::Status CheckSizesFit(absl::Span<const Call> calls) {
  const absl::Span<const int> ranks = calls[0].members;
  for (size_t from = 0; from < calls.size(); ++from) {
    for (size_t to = 0; to < calls.size(); ++to) {
      const size_t sent = calls[from].input_bytes[to];
      const size_t expected = calls[to].bytes_of_rank[from];
      if (sent == expected) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(NameOf(calls[0].kind), ": rank ", ranks[from], " sends ",
                       sent, " bytes to rank ", ranks[to], ", which expects ",
                       expected, " bytes from it"));
    }
  }
  return absl::OkStatus();
}

void Copy(absl::Span<const std::byte> from, absl::Span<std::byte> to) {
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

// Reduces into the first member's buffer.
void ReduceIntoFirst(absl::Span<const Call> calls) {
  const Call& first = calls[0];
  if (first.buffer.empty()) return;
  for (const Call& call : calls.subspan(1)) {
    Reduce(first.op, first.dtype, call.buffer, first.buffer);
  }
}

// Copies the whole buffer of one member to all others.
void CopyFrom(size_t source, absl::Span<const Call> calls) {
  for (size_t i = 0; i < calls.size(); ++i) {
    if (i != source) Copy(calls[source].buffer, calls[i].buffer);
  }
}

void GatherParts(absl::Span<const Call> calls) {
  const absl::Span<const size_t> bytes = calls[0].bytes_of_rank;
  const std::vector<size_t> offsets = PartOffsets(bytes);
  for (size_t from = 0; from < calls.size(); ++from) {
    for (size_t to = 0; to < calls.size(); ++to) {
      if (from == to) continue;
      Copy(calls[from].buffer.subspan(offsets[from], bytes[from]),
           calls[to].buffer.subspan(offsets[from], bytes[from]));
    }
  }
}

// Copies the parts of the first member's buffer; the first member's own is in
// place.
void ScatterPartsOfFirst(absl::Span<const Call> calls) {
  const absl::Span<const size_t> bytes = calls[0].bytes_of_rank;
  const std::vector<size_t> offsets = PartOffsets(bytes);
  for (size_t to = 1; to < calls.size(); ++to) {
    Copy(calls[0].buffer.subspan(offsets[to], bytes[to]), calls[to].buffer);
  }
}

void SwapParts(absl::Span<const Call> calls) {
  std::vector<std::vector<size_t>> offsets;  // in the output of each member
  for (const Call& call : calls) {
    offsets.push_back(PartOffsets(call.bytes_of_rank));
  }
  for (size_t from = 0; from < calls.size(); ++from) {
    absl::Span<const std::byte> input = calls[from].input;
    for (size_t to = 0; to < calls.size(); ++to) {
      const size_t bytes = calls[from].input_bytes[to];
      Copy(input.first(bytes),
           calls[to].buffer.subspan(offsets[to][from], bytes));
      input.remove_prefix(bytes);
    }
  }
}

}  // namespace

absl::string_view NameOf(Call::Kind kind) {
  switch (kind) {
    case Kind::kAllreduce:
      return "Allreduce";
    case Kind::kBroadcast:
      return "Broadcast";
    case Kind::kAllgather:
      return "Allgather";
    case Kind::kReduceScatter:
      return "ReduceScatter";
    case Kind::kAlltoall:
      return "Alltoall";
    case Kind::kExchange:
      return "Exchange";
    case Kind::kBarrier:
      return "Barrier";
    case Kind::kCreateSubgroup:
      return "CreateSubgroup";
  }
  return "unknown";
}

absl::Status CheckCalls(absl::Span<const Call> calls) {
  const Call& first = calls[0];
  for (size_t i = 0; i < calls.size(); ++i) {
    if (!AreAlike(first, calls[i])) {
      return DifferentCallsError(first.members, calls);
    }
    if (const absl::Status status =
            CheckArguments(calls[i], static_cast<int>(i));
        !status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat(status.message(), " (called by rank ",
                                       first.members[i], ")"));
    }
  }
  if (first.kind == Kind::kAlltoall || first.kind == Kind::kExchange) {
    return CheckSizesFit(calls);
  }
  return absl::OkStatus();
}

absl::Status DifferentCallsError(absl::Span<const int> ranks,
                                 absl::Span<const Call> calls) {
  std::map<std::string, std::vector<int>> ranks_of_call;
  for (size_t i = 0; i < calls.size(); ++i) {
    ranks_of_call[Describe(calls[i])].push_back(ranks[i]);
  }
  std::map<int, std::string> sides;  // by their lowest ranks
  for (const auto& [description, side] : ranks_of_call) {
    sides[side.front()] =
        absl::StrCat(NameRanks(side), " called ", description);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the ranks called different operations: ",
      absl::StrJoin(sides, "; ", [](std::string* out, const auto& side) {
        out->append(side.second);
      })));
}

void Execute(absl::Span<const Call> calls) {
  switch (calls[0].kind) {
    case Kind::kAllreduce:
      ReduceIntoFirst(calls);
      CopyFrom(0, calls);
      break;
    case Kind::kBroadcast:
      CopyFrom(static_cast<size_t>(calls[0].root), calls);
      break;
    case Kind::kAllgather:
      GatherParts(calls);
      break;
    case Kind::kReduceScatter:
      ReduceIntoFirst(calls);
      ScatterPartsOfFirst(calls);
      break;
    case Kind::kAlltoall:
    case Kind::kExchange:
      SwapParts(calls);
      break;
    case Kind::kBarrier:
    case Kind::kCreateSubgroup:
      break;
  }
}

}  // namespace hvdlite::collective
