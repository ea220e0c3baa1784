// Request: what the ranks have to agree on before a tensor can be reduced.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "collective/data_type.h"
#include "collective/reduce_op.h"

namespace hvdlite::negotiation {

// The values travel between ranks: append only.
enum class Collective : uint8_t {
  kAllreduce = 0,
  kBroadcast = 1,
  kBarrier = 2
};

// "ALLREDUCE", "BROADCAST", "BARRIER": as in the names of trace events.
absl::string_view NameOf(Collective collective);

// Describes one tensor's operation. All ranks submit an equal Request under the
// same name, or all get the same error.
struct Request {
  std::string name;
  Collective collective = Collective::kAllreduce;
  collective::DataType dtype = collective::DataType::kFloat32;
  std::vector<int64_t> shape;    // elements
  std::vector<int64_t> strides;  // elements; empty: row-major
  collective::ReduceOp op = collective::ReduceOp::kSum;
  // Divide the sum by the number of ranks that took part; op is kSum then.
  bool average = false;
  double prescale_factor = 1;
  double postscale_factor = 1;
  int root_rank = 0;  // of a broadcast
  // Not empty: this rank cannot take part, and why. Then the operation fails on
  // every rank with this reason, rather than leave the others waiting.
  std::string refusal;

  int64_t size_bytes() const;  // of the tensor; 0 for a barrier

  friend bool operator==(const Request&, const Request&) = default;
};

}  // namespace hvdlite::negotiation
