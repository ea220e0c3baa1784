// Checks arguments of a collective call, as far as one rank can. Each function
// returns InvalidArgument with the name of the call if the condition in its
// comment does not hold.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "collective/kernels/data_type.h"

namespace hvdlite::collective {

// `dtype` and `op` are known and `buffer` holds whole, aligned elements.
absl::Status CheckReductionArguments(absl::string_view call,
                                     absl::Span<const std::byte> buffer,
                                     DataType dtype, ReduceOp op);

// `bytes_of_rank` has `size` entries, which add up to `buffer_bytes`.
absl::Status CheckParts(absl::string_view call, size_t buffer_bytes,
                        absl::Span<const size_t> bytes_of_rank, int size);

// Both of the above, and every part holds whole elements.
absl::Status CheckReduceScatterArguments(absl::Span<const std::byte> buffer,
                                         absl::Span<const size_t> bytes_of_rank,
                                         DataType dtype, ReduceOp op, int size);

// Input and output consist of their parts, and `rank` sends itself as much as
// it receives from itself.
absl::Status CheckAlltoallArguments(size_t input_size,
                                    absl::Span<const size_t> input_bytes,
                                    size_t output_size,
                                    absl::Span<const size_t> output_bytes,
                                    int rank, int size);

// `root` is one of `size` ranks.
absl::Status CheckBroadcastArguments(int root, int size);

// `peer` is one of `size` ranks, but not `rank`.
absl::Status CheckExchangeArguments(int peer, int rank, int size);

// `members` are some of `size` ranks, each once, with `rank` among them; `tag`
// is from 0 to 32767.
absl::Status CheckSubgroupArguments(absl::Span<const int> members, int tag,
                                    int rank, int size);

}  // namespace hvdlite::collective
