#include "negotiation/protocol/request_wire.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hvdlite::negotiation {
namespace {

// Values of a newer version.
bool IsKnown(const wire::Request& message) {
  for (const wire::Tensor& tensor : message.tensors()) {
    if (tensor.dtype() >= collective::kNumDataTypes) return false;
  }
  return message.collective() < kNumCollectives &&
         message.op() < collective::kNumReduceOps &&
         message.compression() < collective::kNumCompressions;
}

}  // namespace

void ToWire(const Request& request, wire::Request* message) {
  message->set_name(request.name);
  message->set_process_set(request.process_set);
  message->set_collective(static_cast<uint32_t>(request.collective));
  for (const TensorSpec& tensor : request.tensors) {
    wire::Tensor* added = message->add_tensors();
    added->set_dtype(static_cast<uint32_t>(tensor.dtype));
    added->mutable_shape()->Assign(tensor.shape.begin(), tensor.shape.end());
    added->mutable_strides()->Assign(tensor.strides.begin(),
                                     tensor.strides.end());
  }
  message->set_op(static_cast<uint32_t>(request.op));
  message->set_average(request.average);
  message->set_compression(static_cast<uint32_t>(request.compression));
  message->set_prescale_factor(request.prescale_factor);
  message->set_postscale_factor(request.postscale_factor);
  message->set_root_rank(request.root_rank);
  message->set_differentiable(request.differentiable);
  message->mutable_members()->Assign(request.members.begin(),
                                     request.members.end());
  message->set_removed(request.removed);
  message->set_refusal(request.refusal);
}

absl::StatusOr<Request> FromWire(const wire::Request& message) {
  if (!IsKnown(message)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "request '", message.name(),
        "' has a collective, dtype, op or compression that this version of "
        "hvdlite does not know; all ranks must run the same version"));
  }
  Request request;
  request.name = message.name();
  request.process_set = message.process_set();
  request.collective = static_cast<Collective>(message.collective());
  for (const wire::Tensor& tensor : message.tensors()) {
    TensorSpec& added = request.tensors.emplace_back();
    added.dtype = static_cast<collective::DataType>(tensor.dtype());
    added.shape.assign(tensor.shape().begin(), tensor.shape().end());
    added.strides.assign(tensor.strides().begin(), tensor.strides().end());
  }
  request.op = static_cast<collective::ReduceOp>(message.op());
  request.average = message.average();
  request.compression =
      static_cast<collective::Compression>(message.compression());
  request.prescale_factor = message.prescale_factor();
  request.postscale_factor = message.postscale_factor();
  request.root_rank = message.root_rank();
  request.differentiable = message.differentiable();
  request.members.assign(message.members().begin(), message.members().end());
  request.removed = message.removed();
  request.refusal = message.refusal();
  return request;
}

void ToWire(const RankRuns& ranks, wire::Ranks* message) {
  for (const RankRuns::Run& run : ranks.runs()) {
    message->add_runs(static_cast<uint32_t>(run.first));
    message->add_runs(static_cast<uint32_t>(run.last));
  }
  message->set_unnamed(static_cast<uint32_t>(ranks.unnamed()));
}

RankRuns FromWire(const wire::Ranks& message, int world_size) {
  const auto size = static_cast<uint32_t>(world_size);
  RankRuns ranks;
  for (int i = 0; i + 1 < message.runs_size(); i += 2) {
    const uint32_t first = message.runs(i);
    const uint32_t last = message.runs(i + 1);
    if (first > last || last >= size) continue;
    ranks.Add({static_cast<int>(first), static_cast<int>(last)});
  }
  ranks.AddUnnamed(static_cast<int>(std::min(message.unnamed(), size)));
  return ranks;
}

}  // namespace hvdlite::negotiation
