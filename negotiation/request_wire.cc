#include "negotiation/request_wire.h"

#include "absl/strings/str_cat.h"

namespace hvdlite::negotiation {

void ToWire(const Request& request, wire::Request* message) {
  message->set_name(request.name);
  message->set_collective(static_cast<uint32_t>(request.collective));
  message->set_dtype(static_cast<uint32_t>(request.dtype));
  message->mutable_shape()->Assign(request.shape.begin(), request.shape.end());
  message->mutable_strides()->Assign(request.strides.begin(),
                                     request.strides.end());
  message->set_op(static_cast<uint32_t>(request.op));
  message->set_average(request.average);
  message->set_prescale_factor(request.prescale_factor);
  message->set_postscale_factor(request.postscale_factor);
  message->set_root_rank(request.root_rank);
  message->set_refusal(request.refusal);
}

absl::StatusOr<Request> FromWire(const wire::Request& message) {
  if (message.collective() > static_cast<uint32_t>(Collective::kBarrier) ||
      message.dtype() >= collective::kNumDataTypes ||
      message.op() >= collective::kNumReduceOps) {
    return absl::InvalidArgumentError(absl::StrCat(
        "request '", message.name(),
        "' has a collective, dtype or op that this version of hvdlite does not "
        "know; all ranks must run the same version"));
  }
  Request request;
  request.name = message.name();
  request.collective = static_cast<Collective>(message.collective());
  request.dtype = static_cast<collective::DataType>(message.dtype());
  request.shape.assign(message.shape().begin(), message.shape().end());
  request.strides.assign(message.strides().begin(), message.strides().end());
  request.op = static_cast<collective::ReduceOp>(message.op());
  request.average = message.average();
  request.prescale_factor = message.prescale_factor();
  request.postscale_factor = message.postscale_factor();
  request.root_rank = message.root_rank();
  request.refusal = message.refusal();
  return request;
}

}  // namespace hvdlite::negotiation
