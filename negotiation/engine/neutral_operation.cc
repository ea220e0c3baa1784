#include "negotiation/engine/neutral_operation.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace hvdlite::negotiation {
namespace {

using Scratch = std::vector<std::byte>;

// One after the other, the results of all tensors go to the same place.
Outputs Overlapping(Scratch& scratch, const std::vector<size_t>& sizes) {
  scratch.resize(sizes.empty() ? 0
                               : *std::max_element(sizes.begin(), sizes.end()));
  Outputs outputs;
  for (const size_t size : sizes) {
    outputs.push_back(absl::MakeSpan(scratch).first(size));
  }
  return outputs;
}

}  // namespace

PendingPtr MakeNeutralOperation(Request request) {
  auto pending = std::make_shared<PendingOperation>();
  auto scratch = std::make_shared<Scratch>();
  Operation& operation = pending->operation;
  if (request.rows_differ()) {
    operation.inputs.resize(request.tensors.size());
    operation.rows.resize(request.tensors.size());
    operation.allocate = [scratch,
                          tensors = request.tensors](const RowsByMember& rows) {
      std::vector<size_t> sizes;
      for (size_t i = 0; i < tensors.size(); ++i) {
        sizes.push_back(static_cast<size_t>(
            std::accumulate(rows[i].begin(), rows[i].end(), int64_t{0}) *
            RowBytes(tensors[i])));
      }
      return Overlapping(*scratch, sizes);
    };
  } else {
    operation.absent = true;
    std::vector<size_t> sizes;
    for (const TensorSpec& tensor : request.tensors) {
      sizes.push_back(static_cast<size_t>(SizeBytes(tensor)));
    }
    operation.outputs = Overlapping(*scratch, sizes);
  }
  operation.request = std::move(request);
  operation.keep_alive = std::move(scratch);
  return pending;
}

}  // namespace hvdlite::negotiation
